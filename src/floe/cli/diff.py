"""`floe diff DATASET V1 V2`: how a version differs from another."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import open_project_catalog
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.schemas import SchemaDiff
    from floe.execution.versions.comparing import Comparison, Side


def diff(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or number.")],
    before: Annotated[str, typer.Argument(metavar="V1", help="Tag of the one version.")],
    after: Annotated[str, typer.Argument(metavar="V2", help="Tag of the other.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare two versions: their columns, and how many rows and bytes they have."""
    from floe.execution.versions.comparing import compare_versions

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        found = compare_versions(session, dataset, before, after)
    if as_json:
        print_json(_plain(found))
    else:
        _show(found)


def _plain(found: "Comparison") -> dict[str, Any]:
    return {
        "dataset": found.dataset,
        "before": _plain_side(found.before),
        "after": _plain_side(found.after),
        "rows": found.more_rows,
        "bytes": found.more_bytes,
        "schema": found.schema and _plain_schema(found.schema),
    }


def _plain_side(side: "Side") -> dict[str, Any]:
    return {"tag": side.tag, "state": side.state, "rows": side.rows, "bytes": side.bytes}


def _plain_schema(schema: "SchemaDiff") -> dict[str, Any]:
    return {
        "added": schema.added,
        "removed": schema.removed,
        "retyped": [
            {"column": name, "before": before, "after": after}
            for name, before, after in schema.retyped
        ],
        "tightened": schema.tightened,
        "loosened": schema.loosened,
        "breaking": schema.breaking,
    }


def _show(found: "Comparison") -> None:
    sides = {found.before.tag: found.before, found.after.tag: found.after}
    rows: list[dict[str, Any]] = [
        {"": name, **{tag: getattr(side, name) for tag, side in sides.items()}}
        for name in ("state", "rows", "bytes")
    ]
    for row, more in zip(rows, (None, found.more_rows, found.more_bytes), strict=True):
        row["difference"] = None if more is None else f"{more:+,}"
    console.print(table(found.dataset, rows))
    if found.schema is None:
        console.print("Which columns they have is not known of both.", style="yellow")
    elif found.schema.empty:
        console.print("Their columns are the same.")
    else:
        console.print(table("columns", list(_changes(found, found.schema))))
        if found.schema.breaking:
            console.print("A reader of the first may break on the second.", style="yellow")


def _changes(found: "Comparison", schema: "SchemaDiff") -> list[dict[str, Any]]:
    before = {column.name: column.type for column in found.before.columns or ()}
    after = {column.name: column.type for column in found.after.columns or ()}
    said = [
        *((name, "added", None, after[name]) for name in schema.added),
        *((name, "removed", before[name], None) for name in schema.removed),
        *((name, "retyped", old, new) for name, old, new in schema.retyped),
        *((name, "no longer null", None, None) for name in schema.tightened),
        *((name, "may be null now", None, None) for name in schema.loosened),
    ]
    return [
        {"column": name, "change": change, "before": old, "after": new}
        for name, change, old, new in said
    ]
