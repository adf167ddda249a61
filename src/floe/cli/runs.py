"""`floe runs`: what ran, when, for which date, and how it ended."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption, date_option
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.runs import RunFilter, RunRow


def runs(
    process: Annotated[str | None, typer.Argument(help="Of this process only.")] = None,
    day: Annotated[date | None, date_option("For this business date only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest first.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show runs, the newest first: floe's own and those that others reported."""
    from floe.catalog import find_process
    from floe.catalog.runs import LOST, explain_lost, page_runs

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        wanted: RunFilter = {}
        if process is not None:
            wanted["process_id"] = find_process(session, process).process_id
        if day is not None:
            wanted["business_date"] = day
        found = page_runs(session, limit, **wanted)
    if as_json:
        lost = [explain_lost(run.status, run.parent_run_uuid) for run in found]
        pairs = zip(found, lost, strict=True)
        print_json([{**run._asdict(), "lost_reason": reason} for run, reason in pairs])
    elif not found:
        console.print("Nothing has run yet.")
    else:
        console.print(table("Runs", [_row(run) for run in found]))
        if any(run.status == LOST for run in found):
            text = "LOST: the parent run has ended, and the run never reported its own end."
            console.print(text, style="dim")


def _row(run: "RunRow") -> dict[str, Any]:
    from floe.catalog.run_ids import short_run_id

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
