"""`floe lineage NAME`: what a dataset or process comes from, and what depends on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text

from floe.cli.context import open_project_catalog
from floe.cli.graph_views import Key, Link, Picture, draw_trees, write_dot
from floe.cli.options import JsonOption, ProjectOption
from floe.cli.output import console, print_json

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.column_lineage import ColumnLineage
    from floe.catalog.lineage import Lineage, LineageNode

Side = Literal["upstream", "downstream"]


class Shown(StrEnum):
    """What kind of nodes a walk shows."""

    datasets = "datasets"
    processes = "processes"
    both = "both"


MORE = "  … more"
"""Marks where a walk stopped although the graph goes on."""
ALSO_READ = "also read, no column of it reaches the output"
TITLES: dict[Side, str] = {"upstream": "Comes from", "downstream": "Leads to"}


def lineage(
    name: Annotated[str, typer.Argument(help="A dataset or process, by name, key or number.")],
    *,
    downstream: Annotated[
        bool, typer.Option("--downstream", help="Only what depends on it.")
    ] = False,
    upstream: Annotated[bool, typer.Option("--upstream", help="Only what it comes from.")] = False,
    depth: Annotated[int, typer.Option(min=1, max=1000, help="How many datasets to follow.")] = 5,
    kind: Annotated[Shown, typer.Option(help="Which nodes to show.")] = Shown.both,
    as_of: Annotated[datetime | None, typer.Option(help="As it was then (UTC).")] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Follow columns instead.")] = False,
    column: Annotated[str | None, typer.Option(help="Follow one column only.")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="Print DOT for graphviz.")] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show where data comes from and what depends on it, as a tree."""
    sides = _sides(upstream, downstream)
    with open_project_catalog(project) as catalog, catalog.reading() as session:
        if columns or column:
            answers = _walk_columns(session, name, column, sides, depth)
        else:
            moment = as_of and as_of.replace(tzinfo=UTC)
            answers = _walk(session, name, sides, depth, kind=kind, as_of=moment)
    if as_json:
        print_json({answer.side: answer.plain for answer in answers})
    elif dot:
        print(write_dot(answer.picture for answer in answers))  # noqa: T201
    else:
        _show(answers)


@dataclass(frozen=True)
class _Answer:
    """What lies on one side, for scripts and for people."""

    side: Side
    plain: dict[str, Any]
    picture: Picture
    more: int
    """How many nodes have more behind them than `--depth` shows."""
    truncated: bool
    also_read: Sequence[str] = ()
    """Datasets that decide on rows only."""


def _sides(upstream: bool, downstream: bool) -> list[Side]:
    neither = upstream == downstream
    wanted: dict[Side, bool] = {
        "upstream": upstream or neither,
        "downstream": downstream or neither,
    }
    return [side for side, asked in wanted.items() if asked]


def _walk(
    session: "Session",
    name: str,
    sides: list[Side],
    depth: int,
    *,
    kind: Shown,
    as_of: datetime | None,
) -> list[_Answer]:
    from floe.catalog.lineage import find_node, walk_lineage

    start = find_node(session, name)
    walks = [
        (side, walk_lineage(session, start, side, depth, kind=kind.value, as_of=as_of))
        for side in sides
    ]
    return [
        _Answer(
            side,
            _plain_nodes(found),
            _picture_of_nodes(found),
            sum(node.more for node in found.nodes),
            found.truncated,
        )
        for side, found in walks
    ]


def _plain_nodes(found: "Lineage") -> dict[str, Any]:
    keys = {node.node: node.key for node in found.nodes}
    return {
        "nodes": [
            {**node._asdict(), "path": [keys[step] for step in found.path_to(node.node)]}
            for node in found.nodes
        ],
        "edges": [
            {**link._asdict(), "source": keys[link.source], "target": keys[link.target]}
            for link in found.edges
        ],
        "truncated": found.truncated,
    }


def _picture_of_nodes(found: "Lineage") -> Picture:
    return Picture(
        roots=[found.start],
        labels={node.node: _label(node) for node in found.nodes},
        shapes={node.node: "cylinder" if node.type == "DATASET" else "box" for node in found.nodes},
        links=[
            Link(
                link.source,
                link.target,
                said=f"via {link.via}" if link.via else "",
                dashed="OBSERVED" not in link.known_by,
            )
            for link in found.edges
        ],
    )


def _label(node: "LineageNode") -> Text:
    is_dataset = node.type == "DATASET"
    text = Text(node.name if is_dataset else node.key, style="bold" if is_dataset else "cyan")
    facts = [fact for fact in (node.technology, node.team) if fact]
    if facts:
        text.append(f"  {' · '.join(facts)}", style="dim")
    if node.status != "ACTIVE":
        text.append(f"  {node.status}", style="yellow")
    if node.more:
        text.append(MORE, style="yellow")
    return text


def _walk_columns(
    session: "Session", name: str, column: str | None, sides: list[Side], depth: int
) -> list[_Answer]:
    from floe.catalog import find_dataset
    from floe.catalog.column_lineage import list_also_read, walk_columns

    dataset = find_dataset(session, name)
    also_read = list_also_read(session, dataset) if "upstream" in sides else []
    walks = [(side, walk_columns(session, dataset, column, side, depth)) for side in sides]
    return [
        _Answer(
            side,
            _plain_columns(found) | ({"also_read": also_read} if side == "upstream" else {}),
            _picture_of_columns(found),
            sum(one.more for one in found.columns),
            found.truncated,
            also_read if side == "upstream" else (),
        )
        for side, found in walks
    ]


def _plain_columns(found: "ColumnLineage") -> dict[str, Any]:
    names = {(one.dataset_id, one.column): one.dataset for one in found.columns}
    return {
        "columns": [one._asdict() for one in found.columns],
        "edges": [
            {
                "source": {"dataset": names[link.source], "column": link.source.column},
                "target": {"dataset": names[link.target], "column": link.target.column},
                "kind": link.kind,
                "process": link.process,
            }
            for link in found.edges
        ],
        "truncated": found.truncated,
    }


def _picture_of_columns(found: "ColumnLineage") -> Picture:
    labels: dict[Key, Text] = {
        (one.dataset_id, one.column): Text.assemble(
            (f"{one.dataset}.", "dim"), (one.column, "bold"), (MORE if one.more else "", "yellow")
        )
        for one in found.columns
    }
    return Picture(
        roots=[(one.dataset_id, one.column) for one in found.columns if one.depth == 0],
        labels=labels,
        shapes=dict.fromkeys(labels, "plaintext"),
        links=[
            Link(link.source, link.target, said=f"{link.kind.lower()} by {link.process}")
            for link in found.edges
        ],
    )


def _show(answers: list[_Answer]) -> None:
    for answer in answers:
        console.print(TITLES[answer.side], style="bold underline")
        trees = draw_trees(answer.picture, backwards=answer.side == "upstream")
        for tree in trees:
            console.print(tree)
        if not answer.picture.links:
            console.print("nothing that is known", style="dim")
        if answer.also_read:
            names = ", ".join(answer.also_read)
            console.print(f"{ALSO_READ}: {names}", markup=False, soft_wrap=True)
        if answer.more:
            where = f"The walk stopped at {answer.more} place(s) marked '{MORE.strip()}': "
            console.print(f"{where}use a larger --depth.", style="yellow", soft_wrap=True)
        elif answer.truncated:
            console.print("There is more than can be shown: use a smaller --depth.", style="yellow")
