"""`floe runs`: list runs with date, state and duration."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, date_option, open_project_catalog
from floe.cli.output import console, fields_of, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from floe.catalog.runs import RunFilter, RunRow

UNSUCCESSFUL = ("FAILED", "CANCELLED", "LOST")
LONGEST_REASON = 300


def runs(  # noqa: PLR0917 - typer reads its options from here
    process: Annotated[str | None, typer.Argument(help="Only runs of this process.")] = None,
    day: Annotated[date | None, date_option("Only runs for this business date.")] = None,
    parents: Annotated[
        bool, typer.Option("--parents", help="Also list runs that only group others.")
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of runs, newest first.")
    ] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """List runs, newest first: floe's own and those that other systems reported.

    A Dagster run with a single step is one line; --parents shows both.
    """
    from floe.catalog import find_process
    from floe.catalog.run_details import list_reasons
    from floe.catalog.runs import page_runs

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        wanted: RunFilter = {}
        if process is None:
            wanted["no_groups"] = not parents
        else:
            wanted["process_id"] = find_process(session, process).process_id
        if day is not None:
            wanted["business_date"] = day
        page = page_runs(session, limit, **wanted)
        failed = [run.run_id for run in page if run.status in UNSUCCESSFUL]
        reasons = list_reasons(session, failed)
    if as_json:
        print_json([{**fields_of(run), "reason": reasons.get(run.run_id)} for run in page])
    elif not page:
        console.print("No runs yet.")
    else:
        console.print(table("Runs", [_row(run) for run in page]))
        print_reasons(
            [
                (run.run_uuid, run.status, reasons[run.run_id])
                for run in page
                if run.run_id in reasons
            ]
        )


def print_reasons(reasons: "Sequence[tuple[str, str, str]]") -> None:
    """Print why runs did not succeed: id, status and reason, one line each."""
    from floe.catalog.runs import short_run_id

    for run_uuid, status, reason in reasons:
        first = next(iter(reason.strip().splitlines()), "")
        line = f"{short_run_id(run_uuid)} {status}: {first}"
        shown = line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
        console.print(shown, style="red", markup=False)
    if reasons:
        console.print("Details of a run: floe show RUN", style="dim")


def _row(run: "RunRow") -> dict[str, Any]:
    from floe.catalog.runs import short_run_id

    took = None
    if run.start_ts is not None and run.end_ts is not None:
        took = f"{(run.end_ts - run.start_ts).total_seconds():.1f} s"
    return {
        "run": short_run_id(run.run_uuid),
        "process": run.process_key,
        "date": run.partition_key or run.business_date,
        "state": run.status,
        "took": took,
    }
