"""`floe diff DATASET V1 V2`: compare two versions of a dataset."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, print_json, table

if TYPE_CHECKING:
    from floe.catalog.schemas import SchemaDiff
    from floe.execution.versions.previews import Comparison, Side


def diff(
    dataset: Annotated[str, typer.Argument(help="Name, full name, alias or id.")],
    before: Annotated[str, typer.Argument(metavar="V1", help="Tag of the first version.")],
    after: Annotated[str, typer.Argument(metavar="V2", help="Tag of the second version.")],
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare the columns, rows and bytes of two versions."""
    from floe.execution.versions.previews import compare_versions

    with open_project_catalog(project) as catalog, catalog.reading() as session:
        comparison = compare_versions(session, dataset, before, after)
    if as_json:
        print_json(_plain(comparison))
    else:
        _show(comparison)


def _plain(comparison: "Comparison") -> dict[str, Any]:
    return {
        "dataset": comparison.dataset,
        "before": _plain_side(comparison.before),
        "after": _plain_side(comparison.after),
        "rows": comparison.more_rows,
        "bytes": comparison.more_bytes,
        "schema": comparison.schema and _plain_schema(comparison.schema),
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


def _show(comparison: "Comparison") -> None:
    sides = {comparison.before.tag: comparison.before, comparison.after.tag: comparison.after}
    rows: list[dict[str, Any]] = [
        {"": name, **{tag: getattr(side, name) for tag, side in sides.items()}}
        for name in ("state", "rows", "bytes")
    ]
    for row, more in zip(rows, (None, comparison.more_rows, comparison.more_bytes), strict=True):
        row["difference"] = None if more is None else f"{more:+,}"
    console.print(table(comparison.dataset, rows))
    if comparison.schema is None:
        console.print("The columns of at least one version are not known.", style="yellow")
    elif comparison.schema.empty:
        console.print("The columns are the same.")
    else:
        console.print(table("columns", list(_changes(comparison, comparison.schema))))
        if comparison.schema.breaking:
            console.print("Breaking change: readers of V1 may fail on V2.", style="yellow")


def _changes(comparison: "Comparison", schema: "SchemaDiff") -> list[dict[str, Any]]:
    before = {column.name: column.type for column in comparison.before.columns or ()}
    after = {column.name: column.type for column in comparison.after.columns or ()}
    changes = [
        *((name, "added", None, after[name]) for name in schema.added),
        *((name, "removed", before[name], None) for name in schema.removed),
        *((name, "retyped", old, new) for name, old, new in schema.retyped),
        *((name, "not null now", None, None) for name in schema.tightened),
        *((name, "nullable now", None, None) for name in schema.loosened),
    ]
    return [
        {"column": name, "change": change, "before": old, "after": new}
        for name, change, old, new in changes
    ]
