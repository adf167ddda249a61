"""`floe compact`: merge the small files of lake tables."""

from dataclasses import asdict
from typing import Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project


def compact(
    dataset: Annotated[
        str | None, typer.Argument(help="A lake table of the project (default: all).")
    ] = None,
    min_input_files: Annotated[
        int, typer.Option(min=2, help="Least number of small files to merge.")
    ] = 5,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Merge the small files of lake tables; their rows do not change."""
    from floe.execution.maintenance.optimization import compact_datasets
    from floe.execution.spark.session import SparkSessions
    from floe.execution.workspace import load_site, open_workspace

    names = None if dataset is None else [dataset]
    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status("Compacting") as status:
        done = compact_datasets(
            workspace, SparkSessions(site), names, min_input_files, status.update
        )
    rows = [asdict(compacted) for compacted in done]
    if as_json:
        print_json({"tables": rows})
    elif any(compacted.files_before for compacted in done):
        console.print(table("Compacted", [row for row in rows if row["files_before"]]))
    else:
        console.print("No table has small files to merge.")
