"""`floe compact`: write the small files of lake tables together."""

from dataclasses import asdict
from typing import Annotated

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project


def compact(
    dataset: Annotated[
        str | None, typer.Argument(help="A lake table of the project (default: all).")
    ] = None,
    min_input_files: Annotated[
        int, typer.Option(min=2, help="Leave alone what has fewer small files.")
    ] = 5,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the small files of lake tables together, without a change to their rows."""
    from floe.execution.maintenance.compacting import compact_datasets
    from floe.execution.sparks import Sparks
    from floe.execution.workspace import load_site, open_workspace

    names = None if dataset is None else [dataset]
    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status("Compacting") as status:
        done = compact_datasets(workspace, Sparks(site), names, min_input_files, status.update)
    rows = [asdict(one) for one in done]
    if as_json:
        print_json({"tables": rows})
    elif any(one.files_before for one in done):
        console.print(table("Compacted", [row for row in rows if row["files_before"]]))
    else:
        console.print("No table has small files to write together.")
