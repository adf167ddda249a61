"""`floe show RUN`: everything about one run, first of all why it failed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import find_bare_home, open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_facts, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.run_details import CheckOutcome, RelatedRun, RunDetails, RunSql

JVM = "JVM stacktrace:"
SQL_AROUND, LOG_LINES, TRACE_LINES, MOST_SAMPLES = 3, 20, 15, 5


def show(
    run: Annotated[str, typer.Argument(help="Run id, or its first characters.")],
    log_lines: Annotated[
        int, typer.Option("--log", min=0, max=10_000, help="How many lines of the log's end.")
    ] = LOG_LINES,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a run: why it failed, its SQL and log, what it read and made, its checks and parts."""
    from floe.catalog.run_ids import whole_run_id
    from floe.catalog.runs import find_run

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        run_uuid = whole_run_id(session, run)
        if find_run(session, run_uuid) is None and _show_batch(session, run_uuid, as_json=as_json):
            return
        from floe.catalog.run_details import get_run_details

        details = get_run_details(session, run_uuid)
    log = _log_tail(project, details.run.log_location, log_lines)
    if as_json:
        print_json(describe_details(details, log))
    else:
        _show(details, log)


def describe_details(details: "RunDetails", log: Sequence[str]) -> dict[str, Any]:
    """A run as JSON."""
    return {
        **details.run._asdict(),
        "reason": details.reason,
        "trace": details.trace or None,
        "seconds": details.seconds,
        "attempts": details.attempts,
        "where": details.where or None,
        "sql": None if details.sql is None else details.sql._asdict(),
        "parent": None if details.parent is None else details.parent._asdict(),
        "children": [one._asdict() for one in details.children],
        "inputs": [one._asdict() for one in details.inputs],
        "outputs": [one._asdict() for one in details.outputs],
        "steps": [one._asdict() for one in details.steps],
        "checks": [one._asdict() for one in details.checks],
        "log": list(log),
    }


def _show_batch(session: "Session", batch: str, *, as_json: bool) -> bool:
    """Show the runs of a batch, which is no run itself; False if there are none."""
    from floe.catalog.run_details import list_related
    from floe.catalog.tables import ProcessRun

    children = list_related(session, ProcessRun.parent_run_uuid == batch)
    if not children:
        return False
    if as_json:
        print_json({"batch": batch, "children": [one._asdict() for one in children]})
    else:
        console.print(table(f"Batch {batch}", [_related(one) for one in children]))
    return True


def _log_tail(project: Path | None, location: str | None, lines: int) -> list[str]:
    """Return the end of a run's log, where it is on this machine."""
    if location is None or not lines:
        return []
    home = find_bare_home(project) or find_project(project)
    path = home.root / location
    if not path.is_file() or not path.resolve().is_relative_to(home.root.resolve()):
        return []
    return path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]


def _show(details: "RunDetails", log: Sequence[str]) -> None:
    run = details.run
    took = None if details.seconds is None else f"{details.seconds:.1f} s"
    parent = details.parent
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
            "attempts": details.attempts if details.attempts > 1 else None,
            "where": details.where or None,
            "parent": (parent and f"{parent.run_uuid} {parent.process_key}") or run.parent_run_uuid,
            "log": run.log_location,
        },
    )
    if details.sql is not None and run.status != "SUCCESS":
        _show_sql(details.sql)
    _show_tables(details)
    for check in details.checks:
        _show_samples(check)
    # What happened inside the JVM fills the screen and says nothing about the user's code.
    if trace := details.trace.partition(JVM)[0].strip():
        _show_lines("trace", trace.splitlines()[-TRACE_LINES:])
    if log:
        _show_lines("log", log)


def _show_tables(details: "RunDetails") -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "reads": [
            {"dataset": one.full_name, "version": one.version_tag or None, "state": one.state}
            for one in details.inputs
        ],
        "makes": [
            {
                "dataset": one.full_name,
                "version": one.version_tag,
                "state": one.state,
                "rows": one.row_count,
            }
            for one in details.outputs
        ],
        "steps": [
            {"step": one.step_name, "status": one.status, "rows": one.row_count}
            for one in details.steps
        ],
        "checks": [
            {"check": one.name, "status": one.status, "failed rows": one.failed_rows}
            for one in details.checks
        ],
        "children": [_related(one) for one in details.children],
    }
    for title, rows in tables.items():
        if rows:
            console.print(table(title, rows))


def _related(one: "RelatedRun") -> dict[str, Any]:
    from floe.catalog.run_ids import short_run_id

    return {
        "run": short_run_id(one.run_uuid),
        "process": one.process_key,
        "status": one.status,
        "reason": next(iter((one.reason or "").strip().splitlines()), None),
    }


def _show_sql(sql: "RunSql") -> None:
    """Print the SQL; where the line that failed is known, that line with those around it."""
    lines = sql.text.rstrip().splitlines()
    step = f" of step {sql.step}" if sql.step else ""
    known = sql.line is not None and 1 <= sql.line <= len(lines)
    first, last = 1, len(lines)
    if known and sql.line is not None:
        first, last = max(1, sql.line - SQL_AROUND), min(len(lines), sql.line + SQL_AROUND)
    at = f", line {sql.line}" if known else ""
    console.print(f"sql{step}{at}", style="bold", markup=False)
    for number in range(first, last + 1):
        mark = ">" if known and number == sql.line else " "
        style = "red" if mark == ">" else None
        console.print(f"{mark} {number:>4}  {lines[number - 1]}", style=style, markup=False)


def _show_samples(check: "CheckOutcome") -> None:
    if check.status == "PASS" or not check.samples:
        return
    said = f"{check.name}: {check.message}" if check.message else check.name
    console.print(f"Samples of {said}", style="bold", markup=False)
    for row in check.samples[:MOST_SAMPLES]:
        cells = (
            [f"{name}={value}" for name, value in row.items()] if isinstance(row, dict) else [row]
        )
        console.print(f"  {', '.join(map(str, cells))}", markup=False)


def _show_lines(title: str, lines: Sequence[str]) -> None:
    console.print(title, style="bold")
    for line in lines:
        console.print(f"  {line}", markup=False)
