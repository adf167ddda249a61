"""`floe backfill`: make a range of partitions in batches, in order."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.failing import failures_as_json
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json
from floe.errors import FloeError
from floe.settings import ProjectPaths, find_project

if TYPE_CHECKING:
    from types import FrameType

    from floe.orchestration.backfilling.driving import Plan, Standing, Wish
    from floe.orchestration.backfilling.opening import Opened

STOPPED = 130


class WrongOptionsError(FloeError):
    """The command was called with options that do not go together."""

    exit_code = 2


def backfill(  # noqa: PLR0917 - typer reads its options from here
    name: Annotated[str, typer.Argument(help="The backfill, as floe.yaml names it.")],
    start: Annotated[
        str | None, typer.Option("--from", help="First partition (default: that of floe.yaml).")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Last partition (default: that of floe.yaml).")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Partitions in one run (default: that of floe.yaml).")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the batches only.")] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what is left of the last time.")
    ] = False,
    status: Annotated[bool, typer.Option("--status", help="Show how far the last one is.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Stop the one that is made now.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a range of partitions: one Dagster run for each batch, one after the other."""
    with failures_as_json(as_json, backfill=name):
        given = {"--from": start, "--to": end, "--batch-size": batch_size, "--dry-run": dry_run}
        _check(given, resume=resume, status=status, cancel=cancel)
        from floe.orchestration.backfilling.driving import Wish
        from floe.orchestration.backfilling.opening import opened

        paths = find_project(project)
        with opened(paths.root, name, _dagster_address(paths)) as found:
            task = _Task(found, as_json=as_json)
            wish = Wish(start, end, batch_size, resume)
            if status:
                task.show_standing()
            elif cancel:
                task.cancel()
            elif dry_run:
                task.show_plan(found.drive.plan(wish))
            else:
                task.make(wish)


def _check(given: Mapping[str, object], *, resume: bool, status: bool, cancel: bool) -> None:
    alone = {"--resume": resume, "--status": status, "--cancel": cancel}
    chosen = [option for option, wanted in alone.items() if wanted]
    if len(chosen) > 1:
        raise WrongOptionsError(f"{' and '.join(chosen)} do not go together: use one of them.")
    # What was begun has its range; the size of what is left may differ.
    fits = {"--batch-size", "--dry-run"} if resume else set()
    for option, value in given.items():
        if chosen and value and option not in fits:
            raise WrongOptionsError(f"{option} does not go with {chosen[0]}.")


def _dagster_address(paths: ProjectPaths) -> str | None:
    """Say where the Dagster of `floe up` is; None, when it is not up."""
    from floe.services.dagster_services import WEB
    from floe.services.state import read_up

    up = read_up(paths)
    if up is None or not up.alive:
        return None
    return next((one.address for one in up.services if one.name == WEB and one.alive), None)


class _Task:
    """What the command does, and how it shows it."""

    def __init__(self, found: "Opened", *, as_json: bool) -> None:
        self._found = found
        self._as_json = as_json

    def show_plan(self, plan: "Plan") -> None:
        from floe.cli.backfill_views import describe_plan, show_plan

        if self._as_json:
            print_json(describe_plan(plan))
        else:
            show_plan(plan)

    def show_standing(self) -> None:
        from floe.cli.backfill_views import describe_standing, show_standing

        standing = self._found.drive.standing()
        if self._as_json:
            print_json(describe_standing(self._found.name, standing))
        else:
            show_standing(self._found.name, standing)

    def cancel(self) -> None:
        runs = self._found.cancel()
        if self._as_json:
            print_json({"backfill": self._found.name, "canceled": runs})
        elif runs:
            console.print(f"Stopped. Canceled: {', '.join(runs)}", markup=False)
        else:
            console.print("Nothing was under way.")

    def make(self, wish: "Wish") -> None:
        """Make what is to be made; a failure ends with 1, being stopped with 130."""
        from floe.cli.backfill_views import BackfillView
        from floe.orchestration.backfilling.holding import held

        found = self._found
        with held(found.site.state_dir, found.name), _stopped_by_signals():
            launcher = found.launcher()
            view = BackfillView(found.name, launcher.where, quiet=self._as_json)
            plan = None
            try:
                found.drive.settle(launcher, wish, view)
                plan = found.drive.plan(wish)
                with view.shown(plan):
                    standing = found.drive.run(plan, launcher, view)
            except KeyboardInterrupt:
                self._end(plan, found.drive.standing(plan) if plan else None, stopped=True)
            self._end(plan, standing, stopped=False)

    def _end(self, plan: "Plan | None", standing: "Standing | None", *, stopped: bool) -> None:
        from floe.cli.backfill_views import describe_standing, show_end

        ok = standing is not None and standing.next is None and not stopped
        if self._as_json and plan is not None and standing is not None:
            facts: dict[str, Any] = describe_standing(self._found.name, standing)
            print_json({"ok": ok, **facts})
        elif standing is not None:
            show_end(self._found.name, standing, stopped=stopped)
        else:
            err.print("Stopped before anything was begun.")
        if not ok:
            raise typer.Exit(STOPPED if stopped else 1)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and a terminal that closes stop the command as Ctrl-C does."""

    def stop(number: int, frame: "FrameType | None") -> None:
        raise KeyboardInterrupt

    numbers = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
