"""`floe run`: run one process, or all in dependency order, for a business date."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, date_option, parse_business_date
from floe.cli.output import console, err, failures_as_json, print_json
from floe.errors import FloeError
from floe.settings import find_project

if TYPE_CHECKING:
    from collections.abc import Sequence
    from graphlib import TopologicalSorter

    from floe.execution.batch import BatchOptions, BatchReport
    from floe.execution.planning import RunOptions
    from floe.execution.recovery import RemainingWork
    from floe.execution.spark.session import SparkSessions
    from floe.execution.workspace import Workspace

DateOption = Annotated[date | None, date_option("Business date (default: today).")]


class WrongCallError(FloeError):
    """The command was called with options that exclude each other."""

    exit_code = 2


def run(  # noqa: PLR0917 - typer reads its options from here
    process: Annotated[str | None, typer.Argument(help="Process to run.")] = None,
    day: DateOption = None,
    partition: Annotated[str | None, typer.Option(help="Partition to run for.")] = None,
    param: Annotated[
        list[str] | None, typer.Option("--param", help="name=value; may be repeated.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Run all processes, upstream first.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the plan; run nothing.")] = False,
    resume: Annotated[
        str | None, typer.Option(help="Continue a failed run or batch, by its id.")
    ] = None,
    as_run: Annotated[
        str | None, typer.Option("--as", help="Read the same input versions as this run.")
    ] = None,
    run_id: Annotated[str | None, typer.Option(help="Run id to use (a UUID).")] = None,
    parallel: Annotated[
        int | None, typer.Option(min=1, help="With --all: processes to run at the same time.")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run a process for a business date: read, compute, write, check and publish."""
    from floe.execution.batch import PARALLEL, BatchOptions
    from floe.execution.declared_sql import load_with_sql
    from floe.execution.planning import RunOptions
    from floe.execution.spark.session import SparkSessions
    from floe.execution.workspace import load_site, open_workspace

    with failures_as_json(as_json, process=process) as facts:
        _check_call(process, every=every, resume=resume)
        alone = {"--param": param, "--as": as_run, "--run-id": run_id}
        _check_options(alone, process is not None, "a named process")
        _check_options({"--parallel": parallel}, every, "--all")
        _check_options({"--dry-run": dry_run}, resume is None, "a process or --all, not --resume")
        _check_run_id(run_id)
        site = load_site(find_project(project), load=partial(load_with_sql, process=process))
        when = _date(day, partition)
        with open_workspace(site) as workspace:
            resume, as_run = (_resolve_id(workspace, text) for text in (resume, as_run))
            task = _Task(workspace, SparkSessions(site), facts, as_json=as_json)
            # A repeated run keeps its date.
            wanted = when or (None if as_run else _today(workspace))
            options = RunOptions(process or "", wanted, partition, _params(param), as_run)
            if dry_run:
                task.show_plan(process, options)
            elif resume is not None:
                task.resume(resume)
            elif process is not None:
                task.run_one(options, run_id)
            else:
                today = when or _today(workspace)
                task.run_all(BatchOptions(today, partition, parallel=parallel or PARALLEL))


def _resolve_id(workspace: "Workspace", given: str | None) -> str | None:
    """Resolve an id prefix, as `floe runs` shows it."""
    from floe.catalog.runs import resolve_run_id

    if given is None:
        return None
    with workspace.catalog.reading() as session:
        return resolve_run_id(session, given)


def _check_call(process: str | None, *, every: bool, resume: str | None) -> None:
    given = sum((process is not None, every, resume is not None))
    if given != 1:
        raise WrongCallError("Name a process, or use --all, or use --resume RUN.")


def _check_options(given: Mapping[str, object], fits: bool, wanted: str) -> None:
    """Reject options that would be ignored."""
    for name, value in given.items():
        if value and not fits:
            raise WrongCallError(f"{name} needs {wanted}.")


def _check_run_id(run_id: str | None) -> None:
    try:
        uuid.UUID(run_id or str(uuid.UUID(int=0)))
    except ValueError:
        raise WrongCallError(f"--run-id must be a UUID; got '{run_id}'.") from None


def _params(given: list[str] | None) -> dict[str, str]:
    params = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise WrongCallError(f"--param must be name=value; got '{text}'.")
        params[name] = value
    return params


def _date(day: date | None, partition: str | None) -> date | None:
    """Return the requested date: from --date, or from a partition that is a date."""
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
    """Runs one action of the command and prints its result."""

    def __init__(
        self,
        workspace: "Workspace",
        sparks: "SparkSessions",
        facts: dict[str, Any],
        *,
        as_json: bool,
    ) -> None:
        self._workspace, self._sparks, self._as_json = workspace, sparks, as_json
        self._facts = facts
        """Facts for the JSON output if the command fails."""

    def show_plan(self, process: str | None, options: "RunOptions") -> None:
        from floe.cli.run_views import ShownPlan, describe_plan, show_plan
        from floe.execution.batch import prepare_sorter, upstream_of
        from floe.execution.input_deliveries import deliveries_for
        from floe.execution.planning import find_planned_sources, off_day_warning, plan_run

        names = [process] if process is not None else []
        if not names:
            order = prepare_sorter(upstream_of(self._workspace.site.spec.processes))
            names = _sorted_names(order)
        plans = [
            plan_run(self._workspace, replace(options, process=name), whole=False) for name in names
        ]
        sources = find_planned_sources(plans)
        shown = [
            ShownPlan(
                self._workspace.site,
                plan,
                deliveries_for(self._workspace, plan),
                {alias: sources[name, alias] for name, alias in sources if name == plan.process},
                off_day_warning(self._workspace, plan.process, plan.business_date),
            )
            for plan in plans
        ]
        if self._as_json:
            print_json([describe_plan(view) for view in shown])
            return
        for view in shown:
            show_plan(view)

    def resume(self, run_id: str) -> None:
        from floe.execution.batch import BatchOptions
        from floe.execution.recovery import find_batch, find_remaining_work, is_batch

        self._repair()
        if is_batch(self._workspace, run_id):
            batch = find_batch(self._workspace, run_id)
            names = [name for name in self._workspace.site.spec.processes if name not in batch.done]
            if not names:
                self._print_done(run_id, "Batch")
                return
            left = {name: run for name, run in batch.last.items() if name in names}
            options = BatchOptions(
                batch.business_date, batch.partition, names, run_id, resumed=left
            )
            self.run_all(options)
            return
        left_over = find_remaining_work(self._workspace, run_id)
        if left_over is None:
            self._print_done(run_id)
            return
        self.run_one(left_over.options, None, left_over)

    def _print_done(self, run_id: str, kind: str = "Run") -> None:
        if not self._as_json:
            message = f"{kind} {run_id} has succeeded: nothing to resume."
            console.print(message, markup=False, soft_wrap=True)
        elif kind == "Run":
            print_json({"run_id": run_id, "outputs": [], "repeated": True})
        else:
            print_json({"batch": run_id, "ok": True, "arrivals": [], "processes": []})

    def run_all(self, options: "BatchOptions") -> None:
        from floe.cli.run_views import BatchView, show_batch
        from floe.execution.batch import run_batch
        from floe.execution.cancellation import Cancellation, stopped_by_signals

        self._print_off_days(options.processes, options.business_date)
        self._repair()
        cancellation = Cancellation()
        total = len(options.processes or self._workspace.site.spec.processes)
        with stopped_by_signals(cancellation), BatchView(total, quiet=self._as_json) as view:
            view.say(f"batch {options.batch}")
            report = run_batch(
                self._workspace,
                self._sparks,
                options,
                watcher=view.watcher,
                cancellation=cancellation,
            )
        self._finish(report)
        if not self._as_json:
            show_batch(report)
        if not report.ok:
            raise typer.Exit(130 if cancellation.error is not None else 1)

    def run_one(
        self, options: "RunOptions", run_id: str | None, left_over: "RemainingWork | None" = None
    ) -> None:
        from floe.cli.run_views import BatchView, describe_result, show_result
        from floe.execution.batch import receive_and_run
        from floe.execution.cancellation import Cancellation, stopped_by_signals
        from floe.execution.planning import process_spec, read_params
        from floe.execution.runner import RunContext

        # Report mistakes in the call before looking for deliveries.
        spec = process_spec(self._workspace, options.process)
        read_params(spec, options)
        self._print_off_days([options.process], options.business_date)
        if left_over is None:
            self._repair()
        run_id = run_id or str(uuid.uuid4())
        cancellation = Cancellation()
        with stopped_by_signals(cancellation), BatchView(1, quiet=self._as_json) as view:

            def on_line(line: str) -> None:
                # From its first line on, the run is in the catalog.
                self._facts["run_id"] = run_id
                view.watcher.on_line(options.process, line)

            context = RunContext(
                run_id=run_id,
                resumes=left_over.resumes if left_over else None,
                skip=left_over.skip if left_over else (),
                listener=on_line,
                cancellation=cancellation,
            )
            view.watcher.on_start(options.process)
            result = receive_and_run(
                self._workspace, self._sparks, options, context, view.watcher.on_arrival
            )
        if self._as_json:
            print_json(describe_result(result))
        else:
            show_result(result)

    def _print_off_days(self, names: "Sequence[str] | None", day: date | None) -> None:
        """Warn once per calendar if the date is not a business day."""
        from floe.execution.planning import off_day_warning

        every = self._workspace.site.spec.processes if names is None else names
        warnings = [off_day_warning(self._workspace, name, day) for name in every] if day else []
        calendars: dict[str, str] = {}
        for sentence in filter(None, warnings):
            calendars.setdefault(sentence.partition(", the calendar")[0], sentence)
        for sentence in calendars.values():
            err.print(sentence, style="yellow", markup=False)

    def _repair(self) -> None:
        from floe.execution.recovery import repair

        for version in repair(self._workspace, self._sparks):
            if not self._as_json:
                message = f"Repaired {version.dataset} {version.tag}: {version.state}"
                console.print(message, markup=False)

    def _finish(self, report: "BatchReport") -> None:
        from floe.cli.run_views import describe_batch

        if self._as_json:
            print_json(describe_batch(report))


def _sorted_names(order: "TopologicalSorter[str]") -> list[str]:
    names: list[str] = []
    while order.is_active():
        ready = sorted(order.get_ready())
        names += ready
        order.done(*ready)
    return names
