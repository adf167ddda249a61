"""`floe check`: run the declared checks of a dataset on one of its versions."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.version_checks import Checked


def check(
    dataset: Annotated[
        str | None,
        typer.Argument(help="Dataset to check (default: all versions waiting for checks)."),
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Tag of the version (default: newest READY).")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Run the checks of a version. A waiting version becomes READY or REJECTED."""
    from floe.execution.spark.session import SparkSessions
    from floe.execution.version_checks import check_version, check_waiting
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, SparkSessions(site).session() as spark:
        if dataset is None:
            checked = check_waiting(workspace, spark)
        else:
            workspace.dataset(dataset)
            checked = [check_version(workspace, spark, dataset, version)]
    if as_json:
        print_json([_describe(result) for result in checked])
    else:
        _show(checked)
    if not all(result.ok for result in checked):
        raise typer.Exit(1)


def _describe(result: "Checked") -> dict[str, Any]:
    verdicts = result.audited.verdicts if result.audited else ()
    return {
        "dataset": result.dataset,
        "version": result.tag,
        "state": result.state,
        "ok": result.ok,
        "reason": result.reason,
        "recalled": result.recalled,
        "rows": result.audited.rows if result.audited else None,
        "checks": [
            {
                "check": verdict.label,
                "status": verdict.status,
                "failed_rows": verdict.failed_rows,
                "message": verdict.message,
            }
            for verdict in verdicts
        ],
        "samples": dict(result.audited.samples) if result.audited else {},
    }


def _show(checked: "list[Checked]") -> None:
    if not checked:
        console.print("No version is waiting for checks.")
    for result in checked:
        described = _describe(result)
        console.print(f"{result.dataset} {result.tag}: {result.state}", style="bold", markup=False)
        if described["checks"]:
            title = f"{described['rows']:,} rows"
            title = "Results from when it was rejected" if result.recalled else title
            console.print(table(title, described["checks"]))
        elif result.reason:
            console.print(result.reason, markup=False)
