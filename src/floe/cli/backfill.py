"""`floe backfill`: run a range of partitions in batches, in order."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, failures_as_json, print_json
from floe.errors import FloeError
from floe.settings import ProjectPaths, find_project

if TYPE_CHECKING:
    from types import FrameType

    from floe.orchestration.backfilling.driver import BackfillProgress, Overrides, Plan
    from floe.orchestration.backfilling.open_backfill import OpenBackfill

STOPPED = 130


class WrongOptionsError(FloeError):
    """The command was called with options that exclude each other."""

    exit_code = 2


def backfill(  # noqa: PLR0917 - typer reads its options from here
    name: Annotated[str, typer.Argument(help="Backfill of floe.yaml.")],
    start: Annotated[
        str | None, typer.Option("--from", help="First partition (default: from floe.yaml).")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", help="Last partition (default: from floe.yaml).")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Partitions per run (default: from floe.yaml).")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the batches; run nothing.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", help="Continue the last backfill.")] = False,
    status: Annotated[
        bool, typer.Option("--status", help="Show the progress of the last backfill.")
    ] = False,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel the running backfill.")] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a range of partitions: one Dagster run per batch, one after the other."""
    with failures_as_json(as_json, backfill=name):
        given = {"--from": start, "--to": end, "--batch-size": batch_size, "--dry-run": dry_run}
        _check(given, resume=resume, status=status, cancel=cancel)
        from floe.orchestration.backfilling.driver import Overrides
        from floe.orchestration.backfilling.open_backfill import open_backfill

        paths = find_project(project)
        with open_backfill(paths.root, name, _dagster_address(paths)) as opened:
            task = _Task(opened, as_json=as_json)
            overrides = Overrides(start, end, batch_size, resume)
            if status:
                task.show_progress()
            elif cancel:
                task.cancel()
            elif dry_run:
                task.show_plan(opened.driver.plan(overrides))
            else:
                task.run(overrides)


def _check(given: Mapping[str, object], *, resume: bool, status: bool, cancel: bool) -> None:
    alone = {"--resume": resume, "--status": status, "--cancel": cancel}
    chosen = [option for option, wanted in alone.items() if wanted]
    if len(chosen) > 1:
        raise WrongOptionsError(f"Use only one of {' and '.join(chosen)}.")
    # A resumed backfill keeps its range; its batch size may change.
    fits = {"--batch-size", "--dry-run"} if resume else set()
    for option, value in given.items():
        if chosen and value and option not in fits:
            raise WrongOptionsError(f"{option} cannot be used with {chosen[0]}.")


def _dagster_address(paths: ProjectPaths) -> str | None:
    """Return the address of Dagster if `floe up` runs it, else None."""
    from floe.services.dagster_services import WEB
    from floe.services.state import read_up

    up = read_up(paths)
    if up is None or not up.alive:
        return None
    web = (service for service in up.services if service.name == WEB and service.alive)
    return next((service.address for service in web), None)


class _Task:
    """Runs one action of the command and prints its result."""

    def __init__(self, backfill: "OpenBackfill", *, as_json: bool) -> None:
        self._backfill = backfill
        self._as_json = as_json

    def show_plan(self, plan: "Plan") -> None:
        from floe.cli.backfill_views import describe_plan, show_plan

        if self._as_json:
            print_json(describe_plan(plan))
        else:
            show_plan(plan)

    def show_progress(self) -> None:
        from floe.cli.backfill_views import describe_progress, show_progress

        progress = self._backfill.driver.progress()
        if self._as_json:
            print_json(describe_progress(self._backfill.name, progress))
        else:
            show_progress(self._backfill.name, progress)

    def cancel(self) -> None:
        runs = self._backfill.cancel()
        if self._as_json:
            print_json({"backfill": self._backfill.name, "canceled": runs})
        elif runs:
            console.print(f"Canceled runs: {', '.join(runs)}", markup=False)
        else:
            console.print("No run to cancel.")

    def run(self, overrides: "Overrides") -> None:
        """Run all batches; exit with 1 on a failure, with 130 when stopped."""
        from floe.cli.backfill_views import BackfillView
        from floe.orchestration.backfilling.lock import backfill_lock

        backfill = self._backfill
        with backfill_lock(backfill.site.state_dir, backfill.name), _stopped_by_signals():
            launcher = backfill.launcher()
            view = BackfillView(backfill.name, launcher.where, quiet=self._as_json)
            plan = None
            try:
                backfill.driver.finish_open_runs(launcher, overrides, view)
                plan = backfill.driver.plan(overrides)
                with view.show(plan):
                    progress = backfill.driver.run(plan, launcher, view)
            except KeyboardInterrupt:
                self._end(plan, backfill.driver.progress(plan) if plan else None, stopped=True)
            self._end(plan, progress, stopped=False)

    def _end(
        self, plan: "Plan | None", progress: "BackfillProgress | None", *, stopped: bool
    ) -> None:
        from floe.cli.backfill_views import describe_progress, show_end

        ok = progress is not None and progress.next is None and not stopped
        if self._as_json and plan is not None and progress is not None:
            facts: dict[str, Any] = describe_progress(self._backfill.name, progress)
            print_json({"ok": ok, **facts})
        elif progress is not None:
            show_end(self._backfill.name, progress, stopped=stopped)
        else:
            err.print("Stopped before the first run started.")
        if not ok:
            raise typer.Exit(STOPPED if stopped else 1)


@contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Make SIGTERM and a closed terminal stop the command as Ctrl-C does."""

    def stop(signum: int, frame: "FrameType | None") -> None:
        raise KeyboardInterrupt

    signals = (signal.SIGTERM, signal.SIGHUP)
    before = {signum: signal.signal(signum, stop) for signum in signals}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
