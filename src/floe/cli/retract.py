"""`floe retract DATASET VERSION`: withdraw a published version."""

from dataclasses import asdict
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.catalog.impact import DerivedVersion
    from floe.execution.versions.retractions import Retraction


def retract(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or id.")],
    version: Annotated[str, typer.Argument(help="Tag of the version.")],
    reason: Annotated[str, typer.Option(help="Reason, shown to everyone who read it.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Withdraw a version. The previous version becomes READY again."""
    from floe.execution.spark.session import SparkSessions
    from floe.execution.versions import retractions
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status(f"Retracting {version} of {dataset}"):
        done = retractions.retract(
            workspace, SparkSessions(site), dataset, version, reason=reason, actor=getuser()
        )
    if as_json:
        print_json({**asdict(done), "built_on": list(done.built_on)})
    else:
        _show(done)
    if done.problem:
        raise typer.Exit(1)


def _show(done: "Retraction") -> None:
    console.print(f"Version {done.tag} of {done.dataset} is retracted.", markup=False)
    if done.ready_again:
        console.print(f"{done.ready_again} is READY again.", markup=False)
    if done.was_shown and not done.problem:
        shown = done.shows or "nothing, because no other version is READY"
        console.print(f"The stable name now leads to {shown}.", markup=False)
    if done.carried_by:
        listed = ", ".join(done.carried_by)
        message = f"Versions that contain its rows: {listed}. Retract or rerun them as well."
        console.print(message, style="yellow", markup=False)
    if done.built_on:
        console.print(
            table("Versions built on it", [_version_row(version) for version in done.built_on])
        )
        console.print("Rerun or retract them, and tell their owners.", style="yellow")
    if done.problem:
        console.print(
            f"The stable name still leads to it: {done.problem}", style="yellow", markup=False
        )


def _version_row(version: "DerivedVersion") -> dict[str, Any]:
    return {
        "dataset": version.name,
        "version": version.version_tag,
        "state": version.state,
        "owner": version.owner_team or version.owner_email,
    }
