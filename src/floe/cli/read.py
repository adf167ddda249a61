"""`floe read DATASET`: the first rows of a version."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from floe.cli.context import JsonOption, ProjectOption, roles_of_caller
from floe.cli.output import console, err, print_facts, table
from floe.settings import find_project

if TYPE_CHECKING:
    from floe.execution.versions.previews import Preview

NARROWEST = 10
"""Least width of a column in characters. Narrower rows are shown as lists."""


def read(
    dataset: Annotated[str, typer.Argument(help="A dataset of the project.")],
    version: Annotated[
        str | None, typer.Option("--version", help="Tag of the version (default: newest READY).")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Number of rows.")] = 20,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first rows of a version. With --json, one JSON object per line."""
    from floe.execution.spark.session import SparkSessions
    from floe.execution.versions.previews import preview_version
    from floe.execution.workspace import load_site, open_workspace

    site = load_site(find_project(project))
    with open_workspace(site) as workspace, err.status(f"Reading {dataset}"):
        roles = roles_of_caller(workspace.catalog, site.paths)
        preview = preview_version(
            workspace, SparkSessions(site), dataset, tag=version, limit=limit, roles=roles
        )
    _print_policies(preview)
    if as_json:
        for line in preview.lines:
            print(line)  # noqa: T201
    else:
        _show(preview)


def _print_policies(preview: "Preview") -> None:
    """Print on standard error which columns are masked, hashed or left out."""
    words = {"mask": "masked", "hash": "hashed", "drop": "left out"}
    for column in preview.covered:
        message = f"Column {column.column} is {words[column.action]} by policy '{column.policy}'."
        err.print(message, style="yellow", markup=False)


def _show(preview: "Preview") -> None:
    title = f"{preview.dataset} {preview.tag}"
    # Keep values as text: do not round numbers or group their digits.
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
        for index, row in enumerate(rows, start=1):
            print_facts(f"{title}, row {index}", row)
    if preview.row_count is not None and preview.row_count > len(rows):
        console.print(f"{len(rows):,} of {preview.row_count:,} rows.", style="dim")


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)
