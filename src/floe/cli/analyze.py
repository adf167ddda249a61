"""`floe analyze`: compute table statistics, and count rows, files and bytes."""

from dataclasses import asdict
from typing import Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project


def analyze(
    dataset: Annotated[
        str | None, typer.Argument(help="A dataset of the project (default: all).")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compute statistics for the query planner, and count rows, files and bytes."""
    from floe.execution.maintenance.optimization import analyze_datasets
    from floe.execution.spark.session import SparkSessions
    from floe.execution.workspace import load_site, open_workspace

    names = None if dataset is None else [dataset]
    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status("Analyzing") as status:
        done = analyze_datasets(workspace, SparkSessions(site), names, status.update)
    rows = [asdict(analyzed) for analyzed in done]
    if as_json:
        print_json({"datasets": rows})
    elif not any(analyzed.version for analyzed in done):
        console.print("No dataset has a READY version yet.")
    else:
        # The path of the statistics file is only in the JSON.
        shown = [row for row in rows if row["version"]]
        columns = ("dataset", "version", "rows", "files", "bytes")
        console.print(table("Analyzed", [{name: row[name] for name in columns} for row in shown]))
