"""`floe retract DATASET VERSION`: take a version back that should not have been published."""

from dataclasses import asdict
from getpass import getuser
from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_json, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.catalog.derivation import BuiltOn
    from floe.execution.versions.retracting import Retraction


def retract(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or number.")],
    version: Annotated[str, typer.Argument(help="Tag of the version.")],
    reason: Annotated[str, typer.Option(help="Why, for those who have read it.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Take a version back: nothing reads it any more, and the one before it is READY again."""
    from floe.execution.sparks import Sparks
    from floe.execution.versions import retracting
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status(f"Retracting {version} of {dataset}"):
        done = retracting.retract(
            workspace, Sparks(site), dataset, version, reason=reason, actor=getuser()
        )
    if as_json:
        print_json({**asdict(done), "built_on": [one._asdict() for one in done.built_on]})
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
        console.print(f"The stable name shows {shown}.", markup=False)
    if done.carried_by:
        listed = ", ".join(done.carried_by)
        said = f"Built on it, and still holding its rows: {listed}. Retract or rerun them as well."
        console.print(said, style="yellow", markup=False)
    if done.built_on:
        console.print(
            table("Built on it, and still readable", [_built(one) for one in done.built_on])
        )
        console.print("Rerun or retract them, and tell their owners.", style="yellow")
    if done.problem:
        console.print(
            f"The stable name still shows it: {done.problem}", style="yellow", markup=False
        )


def _built(one: "BuiltOn") -> dict[str, Any]:
    return {
        "dataset": one.name,
        "version": one.tag,
        "state": one.state,
        "owner": one.owner_team or one.owner_email,
    }
