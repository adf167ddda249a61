"""`floe show RUN`: everything about one run, starting with why it failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, find_bare_home, open_project_catalog
from floe.cli.output import console, fields_of, print_facts, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.run_details import CheckOutcome, RelatedRun, RunSql, RunStory

JVM = "JVM stacktrace:"
SQL_AROUND, LOG_LINES, TRACE_LINES, MOST_SAMPLES = 3, 20, 15, 5


def show(
    run: Annotated[str, typer.Argument(help="Run id, or its first characters.")],
    log_lines: Annotated[
        int,
        typer.Option("--log", min=0, max=10_000, help="Number of lines from the end of the log."),
    ] = LOG_LINES,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: reason of a failure, SQL, log, versions read and written, checks."""
    from floe.catalog.runs import find_run, resolve_run_id

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        run_uuid = resolve_run_id(session, run)
        if find_run(session, run_uuid) is None and _show_batch(session, run_uuid, as_json=as_json):
            return
        from floe.catalog.run_details import get_run_story

        details = get_run_story(session, run_uuid)
    log = _log_tail(project, details.log_location, log_lines)
    if as_json:
        print_json({**fields_of(details), "log": log})
    else:
        _show(details, log)


def _show_batch(session: "Session", batch: str, *, as_json: bool) -> bool:
    """Show the runs of a batch, which is not a run itself; False if there are none."""
    from floe.catalog.run_details import list_related
    from floe.catalog.tables import ProcessRun

    children = list_related(session, ProcessRun.parent_run_uuid == batch)
    if not children:
        return False
    if as_json:
        print_json({"batch": batch, "children": children})
    else:
        console.print(table(f"Batch {batch}", [_related(run) for run in children]))
    return True


def _log_tail(project: Path | None, location: str | None, lines: int) -> list[str]:
    """Return the end of a run's log, if it is on this machine."""
    if location is None or not lines:
        return []
    home = find_bare_home(project) or find_project(project)
    path = home.root / location
    if not path.is_file() or not path.resolve().is_relative_to(home.root.resolve()):
        return []
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


def _show(details: "RunStory", log: Sequence[str]) -> None:
    took = None if details.seconds is None else f"{details.seconds:.1f} s"
    run, parent = details, details.parent
    print_facts(
        f"Run {run.run_uuid}",
        {
            "process": run.process_key,
            "date": run.business_date,
            "partition": run.partition_key,
            "status": run.status,
            "reason": details.reason and details.reason.strip(),
            "started": run.start_ts,
            "took": took,
            "attempts": details.attempt if details.attempt > 1 else None,
            "where": details.where,
            "parent": (parent and f"{parent.run_uuid} {parent.process_key}") or run.parent_run_uuid,
            "log": run.log_location,
        },
    )
    if details.sql is not None and run.status != "SUCCESS":
        _show_sql(details.sql)
    _show_tables(details)
    for check in details.checks:
        _show_samples(check)
    # Leave out the JVM's trace: it is long and says nothing about the user's code.
    if trace := (details.trace or "").partition(JVM)[0].strip():
        _show_lines("trace", trace.splitlines()[-TRACE_LINES:])
    if log:
        _show_lines("log", log)


def _show_tables(details: "RunStory") -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "reads": [
            {
                "dataset": version.full_name,
                "version": version.version_tag or None,
                "state": version.state,
            }
            for version in details.inputs
        ],
        "writes": [
            {
                "dataset": version.full_name,
                "version": version.version_tag,
                "state": version.state,
                "rows": version.row_count,
            }
            for version in details.outputs
        ],
        "steps": [
            {"step": step.step_name, "status": step.status, "rows": step.row_count}
            for step in details.steps
        ],
        "checks": [
            {"check": check.name, "status": check.status, "failed rows": check.failed_rows}
            for check in details.checks
        ],
        "children": [_related(run) for run in details.children],
    }
    for title, rows in tables.items():
        if rows:
            console.print(table(title, rows))


def _related(run: "RelatedRun") -> dict[str, Any]:
    from floe.catalog.runs import short_run_id

    return {
        "run": short_run_id(run.run_uuid),
        "process": run.process_key,
        "status": run.status,
        "reason": next(iter((run.reason or "").strip().splitlines()), None),
    }


def _show_sql(sql: "RunSql") -> None:
    """Print the SQL; if the failed line is known, only that line with its context."""
    lines = sql.text.rstrip().splitlines()
    step = f" of step {sql.step}" if sql.step else ""
    known = sql.line is not None and 1 <= sql.line <= len(lines)
    first, last = 1, len(lines)
    if known and sql.line is not None:
        first, last = max(1, sql.line - SQL_AROUND), min(len(lines), sql.line + SQL_AROUND)
    at = f", line {sql.line}" if known else ""
    console.print(f"sql{step}{at}", style="bold", markup=False)
    for line_no in range(first, last + 1):
        mark = ">" if known and line_no == sql.line else " "
        style = "red" if mark == ">" else None
        console.print(f"{mark} {line_no:>4}  {lines[line_no - 1]}", style=style, markup=False)


def _show_samples(check: "CheckOutcome") -> None:
    if check.status == "PASS" or not check.samples:
        return
    title = f"{check.name}: {check.message}" if check.message else check.name
    console.print(f"Samples of {title}", style="bold", markup=False)
    for row in check.samples[:MOST_SAMPLES]:
        cells = (
            [f"{name}={value}" for name, value in row.items()] if isinstance(row, dict) else [row]
        )
        console.print(f"  {', '.join(map(str, cells))}", markup=False)


def _show_lines(title: str, lines: Sequence[str]) -> None:
    console.print(title, style="bold")
    for line in lines:
        console.print(f"  {line}", markup=False)
