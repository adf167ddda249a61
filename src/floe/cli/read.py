"""`floe read DATASET`: the first rows of a version."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.callers import roles_of_caller
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, err, print_facts, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.versions.reading import Preview

NARROWEST = 10
"""Characters that a column needs. With less, each row is shown as a list of its values."""


def read(
    dataset: Annotated[str, typer.Argument(help="A dataset of the project.")],
    version: Annotated[
        str | None, typer.Option("--version", help="Tag of the version (default: newest READY).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many rows.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first rows of a version as a table, or as a JSON object a line."""
    from floe.execution.sparks import Sparks
    from floe.execution.versions.reading import preview_version
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status(f"Reading {dataset}"):
        roles = roles_of_caller(workspace.catalog, site.paths)
        preview = preview_version(
            workspace, Sparks(site), dataset, tag=version, limit=limit, roles=roles
        )
    _say_covered(preview)
    if as_json:
        for line in preview.lines:
            print(line)  # noqa: T201
    else:
        _show(preview)


def _say_covered(preview: "Preview") -> None:
    """Say on standard error what is not shown as it is: the rows alone do not tell."""
    words = {"mask": "masked", "hash": "hashed", "drop": "left out"}
    for one in preview.covered:
        said = f"{one.column} is {words[one.action]} by the policy '{one.policy}'."
        err.print(said, style="yellow", markup=False)


def _show(preview: "Preview") -> None:
    title = f"{preview.dataset} {preview.tag}"
    # As text: a number of the data is not to be rounded, nor an id split by commas.
    rows = [
        {name: _text(value) for name, value in json.loads(line, parse_float=str).items()}
        for line in preview.lines
    ]
    if not rows:
        console.print(f"{title} has no rows.", markup=False)
        return
    if len(preview.columns) * NARROWEST <= console.width:
        console.print(table(title, rows))
    else:
        for number, row in enumerate(rows, start=1):
            print_facts(f"{title}, row {number}", row)
    if preview.row_count is not None and preview.row_count > len(rows):
        console.print(f"{len(rows):,} of {preview.row_count:,} rows.", style="dim")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
