"""`floe vacuum`: remove versions past their retention, and orphaned files."""

from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.maintenance.sweep import VacuumReport


def vacuum(
    dataset: Annotated[
        str | None, typer.Argument(help="A dataset of the project (default: all).")
    ] = None,
    *,
    retain: Annotated[
        str | None,
        typer.Option(
            help="Keep younger versions, such as 30d (default: each dataset's retention)."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List what would be removed; remove nothing.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove versions past their retention; never READY, used or held ones."""
    from floe.execution.maintenance.retention import parse_retain
    from floe.execution.maintenance.sweep import VacuumOptions, vacuum_datasets
    from floe.execution.spark.session import SparkSessions
    from floe.execution.workspace import load_site, open_workspace

    order = VacuumOptions(parse_retain(retain), dry_run=dry_run, actor=getuser())
    names = None if dataset is None else [dataset]
    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status("Vacuuming") as status:
        report = vacuum_datasets(workspace, SparkSessions(site), names, order, status.update)
    if as_json:
        print_json(report.plain())
    else:
        _show(report)
    # A skipped dataset is an error only if it was named; else the next vacuum handles it.
    if report.failed or (dataset is not None and report.skipped):
        raise typer.Exit(1)


def _show(report: "VacuumReport") -> None:
    if report.items:
        rows = [
            {
                "dataset": item.dataset,
                "what": f"{item.kind} {item.name}",
                "why": item.reason,
                "bytes": item.bytes,
            }
            for item in report.items
        ]
        console.print(table("Would be removed" if report.dry_run else "Removed", rows))
    else:
        console.print("Nothing is past its retention.")
    if report.kept:
        rows = [
            {"dataset": item.dataset, "name": item.name, "why": item.reason} for item in report.kept
        ]
        console.print(table("Kept although past retention", rows))
    for reasons, style in ((report.skipped, "yellow"), (report.failed, "red")):
        for name, reason in reasons.items():
            console.print(f"Skipped {name}: {reason}", style=style, markup=False)
    if report.freed:
        verb = "Would free" if report.dry_run else "Freed"
        console.print(f"{verb} {report.freed:,} bytes.")
