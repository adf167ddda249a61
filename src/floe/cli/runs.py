"""`floe runs`: what ran, when, for which date, and how it ended."""

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption, date_option
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from floe.catalog.runs import RunFilter, RunRow

UNSUCCESSFUL = ("FAILED", "CANCELLED", "LOST")
LONGEST_REASON = 300


def runs(  # noqa: PLR0917 - typer reads its options from here
    process: Annotated[str | None, typer.Argument(help="Of this process only.")] = None,
    day: Annotated[date | None, date_option("For this business date only.")] = None,
    parents: Annotated[
        bool, typer.Option("--parents", help="Also runs that only group others.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the newest first.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show runs, the newest first: floe's own and those that others reported.

    A Dagster run and the one step that it consists of are one line; --parents shows both.
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
        found = page_runs(session, limit, **wanted)
        bad = [run.run_id for run in found if run.status in UNSUCCESSFUL]
        reasons = list_reasons(session, bad)
    if as_json:
        print_json([{**run._asdict(), "reason": reasons.get(run.run_id)} for run in found])
    elif not found:
        console.print("Nothing has run yet.")
    else:
        console.print(table("Runs", [_row(run) for run in found]))
        print_reasons(
            [
                (run.run_uuid, run.status, reasons[run.run_id])
                for run in found
                if run.run_id in reasons
            ]
        )


def print_reasons(reasons: "Sequence[tuple[str, str, str]]") -> None:
    """Say why runs did not succeed: id, status and reason a line each, and how to see more."""
    from floe.catalog.run_ids import short_run_id

    for run_uuid, status, reason in reasons:
        first = next(iter(reason.strip().splitlines()), "")
        said = f"{short_run_id(run_uuid)} {status}: {first}"
        shown = said if len(said) <= LONGEST_REASON else f"{said[: LONGEST_REASON - 1]}…"
        console.print(shown, style="red", markup=False)
    if reasons:
        console.print("All about a run: floe show RUN", style="dim")


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
