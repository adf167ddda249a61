"""`floe run`: run one process, or all of a project in their order, for a business date."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.failing import failures_as_json
from floe.cli.options import JsonOption, ProjectOption, date_option, parse_business_date
from floe.cli.output import console, err, print_json
from floe.errors import FloeError
from floe.settings import find_project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from graphlib import TopologicalSorter

    from floe.execution.batch import BatchReport, BatchWish
    from floe.execution.planning import Wish
    from floe.execution.resuming import Remainder
    from floe.execution.sparks import Sparks
    from floe.execution.versions.arrivals import Arrival
    from floe.execution.workspace import Workspace

DateOption = Annotated[date | None, date_option("Business date (default: today).")]


class WrongCallError(FloeError):
    """The command was called with options that do not go together."""

    exit_code = 2


def run(  # noqa: PLR0917 - typer reads its options from here
    process: Annotated[str | None, typer.Argument(help="The process to run.")] = None,
    day: DateOption = None,
    partition: Annotated[str | None, typer.Option(help="Partition to run for.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", help="name=value; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Run every process in order.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan only.")] = False,
    resume: Annotated[
        str | None, typer.Option(help="Go on with a run, or with a batch of runs.")
    ] = None,
    as_run: Annotated[
        str | None, typer.Option("--as", help="Read the very versions that this run read.")
    ] = None,
    run_id: Annotated[str | None, typer.Option(help="The id that the run is to have.")] = None,
    parallel: Annotated[int | None, typer.Option(min=1, help="Runs at once, with --all.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a process for a business date: read, compute, write, check and publish versions."""
    from floe.execution.batch import PARALLEL, BatchWish
    from floe.execution.declared_sql import load_with_sql
    from floe.execution.planning import Wish
    from floe.execution.sparks import Sparks
    from floe.execution.workspace import load_site, open_workspace

    with failures_as_json(as_json, process=process) as facts:
        _check_call(process, every=every, resume=resume)
        alone = {"--param": param, "--as": as_run, "--run-id": run_id}
        _check_options(alone, process is not None, "a process by its name")
        _check_options({"--parallel": parallel}, every, "--all")
        _check_options({"--dry-run": dry_run}, resume is None, "a process or --all, not --resume")
        _check_run_id(run_id)
        site = load_site(find_project(project), load=partial(load_with_sql, process=process))
        when = _date(day, partition)
        with open_workspace(site) as workspace:
            resume, as_run = (_whole_id(workspace, one) for one in (resume, as_run))
            task = _Task(workspace, Sparks(site), facts, as_json=as_json)
            # A run that is repeated has its date.
            wanted = when or (None if as_run else _today(workspace))
            wish = Wish(process or "", wanted, partition, _params(param), as_run)
            if dry_run:
                task.show_plan(process, wish)
            elif resume is not None:
                task.resume(resume)
            elif process is not None:
                task.run_one(wish, run_id)
            else:
                today = when or _today(workspace)
                task.run_all(BatchWish(today, partition, parallel=parallel or PARALLEL))


def _whole_id(workspace: "Workspace", given: str | None) -> str | None:
    """`floe runs` shows the first letters of an id: they are enough."""
    from floe.catalog.run_ids import whole_run_id

    if given is None:
        return None
    with workspace.catalog.reading() as session:
        return whole_run_id(session, given)


def _check_call(process: str | None, *, every: bool, resume: str | None) -> None:
    given = sum((process is not None, every, resume is not None))
    if given != 1:
        raise WrongCallError("Name a process, or use --all, or use --resume RUN: one of the three.")


def _check_options(given: Mapping[str, object], fits: bool, wanted: str) -> None:
    """An option that would be passed over is a mistake that should be heard of."""
    for name, value in given.items():
        if value and not fits:
            raise WrongCallError(f"{name} goes with {wanted}.")


def _check_run_id(run_id: str | None) -> None:
    try:
        uuid.UUID(run_id or str(uuid.UUID(int=0)))
    except ValueError:
        raise WrongCallError(f"--run-id {run_id}: a run's id is a UUID.") from None


def _params(given: list[str] | None) -> dict[str, str]:
    params = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals:
            raise WrongCallError(f"--param {one}: write it as name=value.")
        params[name] = value
    return params


def _date(day: date | None, partition: str | None) -> date | None:
    """Return the date that is asked for: by itself, or as a partition that is one."""
    if day is not None or partition is None:
        return day
    try:
        named = date.fromisoformat(partition)
    except ValueError:
        return None
    return parse_business_date(named)


def _today(workspace: "Workspace") -> date:
    from floe.spec.identity import default_business_date

    return default_business_date(workspace.site.spec.timezone)


class _Task:
    """What the command does, and how it shows it."""

    def __init__(
        self, workspace: "Workspace", sparks: "Sparks", facts: dict[str, Any], *, as_json: bool
    ) -> None:
        self._workspace, self._sparks, self._as_json = workspace, sparks, as_json
        self._facts = facts
        """What is said of it if it fails."""

    def show_plan(self, process: str | None, wish: "Wish") -> None:
        from floe.cli.run_views import ShownPlan, describe_plan, show_plan
        from floe.execution.ordering import sorter, upstream_of
        from floe.execution.planning import made_in_plan, off_day, plan_run
        from floe.execution.receiving import deliveries_for

        names = [process] if process is not None else []
        if not names:
            order = sorter(upstream_of(self._workspace.site.spec.processes))
            names = _drain(order)
        plans = [
            plan_run(self._workspace, replace(wish, process=name), whole=False) for name in names
        ]
        made = made_in_plan(plans)
        shown = [
            ShownPlan(
                self._workspace.site,
                plan,
                deliveries_for(self._workspace, plan),
                {alias: made[name, alias] for name, alias in made if name == plan.process},
                off_day(self._workspace, plan.process, plan.business_date),
            )
            for plan in plans
        ]
        if self._as_json:
            print_json([describe_plan(one) for one in shown])
            return
        for one in shown:
            show_plan(one)

    def resume(self, run_id: str) -> None:
        from floe.execution.batch import BatchWish
        from floe.execution.resuming import children_of, is_batch, remainder_of

        self._repair()
        if is_batch(self._workspace, run_id):
            batch = children_of(self._workspace, run_id)
            names = [name for name in self._workspace.site.spec.processes if name not in batch.done]
            if not names:
                self._say_done(run_id, "Batch")
                return
            left = {name: run for name, run in batch.last.items() if name in names}
            wish = BatchWish(batch.business_date, batch.partition, names, run_id, resumed=left)
            self.run_all(wish)
            return
        left_over = remainder_of(self._workspace, run_id)
        if left_over is None:
            self._say_done(run_id)
            return
        self.run_one(left_over.wish, None, left_over)

    def _say_done(self, run_id: str, kind: str = "Run") -> None:
        if not self._as_json:
            said = f"{kind} {run_id} has finished: there is nothing left to resume."
            console.print(said, markup=False, soft_wrap=True)
        elif kind == "Run":
            print_json({"run_id": run_id, "outputs": [], "repeated": True})
        else:
            print_json({"batch": run_id, "ok": True, "arrivals": [], "processes": []})

    def run_all(self, wish: "BatchWish") -> None:
        from floe.cli.run_views import BatchView, show_batch
        from floe.execution.batch import run_batch
        from floe.execution.cancelling import Cancellation
        from floe.execution.stopping import stopped_by_signals

        self._say_off_days(wish.processes, wish.business_date)
        self._repair()
        cancellation = Cancellation()
        total = len(wish.processes or self._workspace.site.spec.processes)
        with stopped_by_signals(cancellation), BatchView(total, quiet=self._as_json) as view:
            view.say(f"batch {wish.batch}")
            report = run_batch(
                self._workspace,
                self._sparks,
                wish,
                watcher=view.watcher,
                cancellation=cancellation,
            )
        self._finish(report)
        if not self._as_json:
            show_batch(report)
        if not report.ok:
            raise typer.Exit(130 if cancellation.error is not None else 1)

    def run_one(
        self, wish: "Wish", run_id: str | None, left_over: "Remainder | None" = None
    ) -> None:
        from floe.cli.run_views import BatchView, describe_result, show_result
        from floe.execution.cancelling import Cancellation
        from floe.execution.planning import process_spec, read_params
        from floe.execution.receiving import missing_explained, receive_for, refuse_rejected
        from floe.execution.runner import Circumstances, run_process
        from floe.execution.stopping import stopped_by_signals

        # What is wrong with the call is said before anything is looked for or received.
        spec = process_spec(self._workspace, wish.process)
        read_params(spec, wish)
        self._say_off_days([wish.process], wish.business_date)
        if left_over is None:
            self._repair()
        run_id = run_id or str(uuid.uuid4())
        cancellation = Cancellation()
        with stopped_by_signals(cancellation), BatchView(1, quiet=self._as_json) as view:

            def heard(line: str) -> None:
                # The first line of a run says that the catalog knows it.
                self._facts["run_id"] = run_id
                view.watcher.on_line(wish.process, line)

            arrivals: list[Arrival] = []
            if wish.as_run is None and wish.business_date is not None:
                arrivals = receive_for(
                    self._workspace,
                    self._sparks,
                    [spec],
                    wish.business_date,
                    view.watcher.on_arrival,
                )
                refuse_rejected(spec, arrivals)
            how = Circumstances(
                run_id=run_id,
                resumes=left_over.resumes if left_over else None,
                skip=left_over.skip if left_over else (),
                listener=heard,
                cancellation=cancellation,
            )
            view.watcher.on_start(wish.process)
            with missing_explained(arrivals):
                result = run_process(self._workspace, self._sparks, wish, how)
        if self._as_json:
            print_json(describe_result(result))
        else:
            show_result(result)

    def _say_off_days(self, names: "Sequence[str] | None", day: date | None) -> None:
        """Say of a date that it is no business day, once for each calendar; and go on."""
        from floe.execution.planning import off_day

        every = self._workspace.site.spec.processes if names is None else names
        said = [off_day(self._workspace, name, day) for name in every] if day else []
        calendars: dict[str, str] = {}
        for sentence in filter(None, said):
            calendars.setdefault(sentence.partition(", the calendar")[0], sentence)
        for sentence in calendars.values():
            err.print(sentence, style="yellow", markup=False)

    def _repair(self) -> None:
        from floe.execution.resuming import repair

        for one in repair(self._workspace, self._sparks):
            if not self._as_json:
                console.print(f"Repaired {one.dataset} {one.tag}: {one.state}", markup=False)

    def _finish(self, report: "BatchReport") -> None:
        from floe.cli.run_views import describe_batch

        if self._as_json:
            print_json(describe_batch(report))


def _drain(order: "TopologicalSorter[str]") -> list[str]:
    names: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready())
        names += ready
        order.done(*ready)
    return names
