"""`floe check`: run the declared checks of a dataset on one of its versions."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.checking import Checked


def check(
    dataset: Annotated[
        str | None, typer.Argument(help="The dataset (default: all versions that wait).")
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", help="Its tag (default: the newest READY).")
    ] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a version. One that others announced becomes READY or REJECTED by it."""
    from floe.execution.checking import check_version, check_waiting
    from floe.execution.sparks import Sparks
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, Sparks(site).session() as spark:
        if dataset is None:
            checked = check_waiting(workspace, spark)
        else:
            workspace.dataset(dataset)
            checked = [check_version(workspace, spark, dataset, version)]
    if as_json:
        print_json([_described(one) for one in checked])
    else:
        _show(checked)
    if not all(one.ok for one in checked):
        raise typer.Exit(1)


def _described(one: "Checked") -> dict[str, Any]:
    verdicts = one.audited.verdicts if one.audited else ()
    return {
        "dataset": one.dataset,
        "version": one.tag,
        "state": one.state,
        "ok": one.ok,
        "reason": one.reason,
        "recalled": one.recalled,
        "rows": one.audited.rows if one.audited else None,
        "checks": [
            {
                "check": verdict.label,
                "status": verdict.status,
                "failed_rows": verdict.failed_rows,
                "message": verdict.message,
            }
            for verdict in verdicts
        ],
        "samples": dict(one.audited.samples) if one.audited else {},
    }


def _show(checked: "list[Checked]") -> None:
    if not checked:
        console.print("No version waits for its checks.")
    for one in checked:
        described = _described(one)
        console.print(f"{one.dataset} {one.tag}: {one.state}", style="bold", markup=False)
        if described["checks"]:
            title = f"{described['rows']:,} rows"
            title = "What was found when it was rejected" if one.recalled else title
            console.print(table(title, described["checks"]))
        elif one.reason:
            console.print(one.reason, markup=False)
