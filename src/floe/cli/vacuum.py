"""`floe vacuum`: remove versions past their retention, and what nobody knows any more."""

from getpass import getuser
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.maintenance.items import VacuumReport


def vacuum(
    dataset: Annotated[
        str | None, typer.Argument(help="A dataset of the project (default: all).")
    ] = None,
    *,
    retain: Annotated[
        str | None,
        typer.Option(help="Keep what is younger, such as 30d (default: each dataset's retention)."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be removed.")
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove versions that are past their retention, never one that is READY, read or held."""
    from floe.execution.maintenance.retention import parse_retain
    from floe.execution.maintenance.vacuuming import VacuumOrder, vacuum_datasets
    from floe.execution.sparks import Sparks
    from floe.execution.workspace import load_site, open_workspace

    order = VacuumOrder(parse_retain(retain), dry_run=dry_run, actor=getuser())
    names = None if dataset is None else [dataset]
    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status("Vacuuming") as status:
        report = vacuum_datasets(workspace, Sparks(site), names, order, status.update)
    if as_json:
        print_json(report.plain())
    else:
        _show(report)
    # A named dataset that is in use was not vacuumed; of many, the next vacuum takes it.
    if report.failed or (dataset is not None and report.skipped):
        raise typer.Exit(1)


def _show(report: "VacuumReport") -> None:
    if report.items:
        rows = [
            {
                "dataset": item.dataset,
                "what": item.kind,
                "name": item.name,
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
            {"dataset": one.dataset, "name": one.name, "why": one.reason} for one in report.kept
        ]
        console.print(table("Kept all the same", rows))
    for said, style in ((report.skipped, "yellow"), (report.failed, "red")):
        for name, reason in said.items():
            console.print(f"{name} was left alone: {reason}", style=style, markup=False)
    if report.freed:
        verb = "would be" if report.dry_run else "were"
        console.print(f"{report.freed:,} bytes {verb} freed.")
