"""`floe lineage NAME`: upstream and downstream of a dataset or process.

Printed as trees, as JSON, or as DOT for graphviz.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.text import Text
from rich.tree import Tree

from floe.cli.context import JsonOption, ProjectOption, open_project_catalog
from floe.cli.output import console, fields_of, print_json

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.column_lineage import ColumnLineage
    from floe.catalog.lineage import Lineage, LineageNode

Side = Literal["upstream", "downstream"]
Key = Hashable


class Shown(StrEnum):
    """Which kinds of nodes to show."""

    datasets = "datasets"
    processes = "processes"
    both = "both"


MORE = "  … more"
"""Marks a node with neighbours beyond --depth."""
ALSO_READ = "Also read, but no column reaches the output"
TITLES: dict[Side, str] = {"upstream": "Comes from", "downstream": "Leads to"}


def lineage(
    name: Annotated[str, typer.Argument(help="Dataset or process: name, key or id.")],
    *,
    downstream: Annotated[bool, typer.Option("--downstream", help="Show only downstream.")] = False,
    upstream: Annotated[bool, typer.Option("--upstream", help="Show only upstream.")] = False,
    depth: Annotated[int, typer.Option(min=1, max=1000, help="How many datasets to follow.")] = 5,
    kind: Annotated[Shown, typer.Option(help="Kinds of nodes to show.")] = Shown.both,
    as_of: Annotated[
        datetime | None, typer.Option(help="Show the lineage as it was at this time (UTC).")
    ] = None,
    columns: Annotated[bool, typer.Option("--columns", help="Show column lineage.")] = False,
    column: Annotated[str | None, typer.Option(help="Show lineage of this column only.")] = None,
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
            time = as_of and as_of.replace(tzinfo=UTC)
            answers = _walk(session, name, sides, depth, kind=kind, as_of=time)
    if as_json:
        print_json({answer.side: answer.plain for answer in answers})
    elif dot:
        print(write_dot(answer.picture for answer in answers))  # noqa: T201
    else:
        _show(answers)


@dataclass(frozen=True)
class Link:
    """An arrow with its label. Dashed: declared but never observed."""

    source: Key
    target: Key
    label: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Picture:
    """A graph to draw: its roots, the label and shape of each node, and the arrows."""

    roots: Sequence[Key]
    labels: dict[Key, Text]
    shapes: dict[Key, str]
    links: Sequence[Link]


@dataclass(frozen=True)
class _Answer:
    """The result for one side, for scripts and for people."""

    side: Side
    plain: dict[str, Any]
    picture: Picture
    more: int
    """How many nodes have neighbours beyond `--depth`."""
    truncated: bool
    also_read: Sequence[str] = ()
    """Datasets that only filter or join rows."""


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
            _plain_nodes(graph),
            _picture_of_nodes(graph),
            sum(node.more for node in graph.nodes),
            graph.truncated,
        )
        for side, graph in walks
    ]


def _plain_nodes(graph: "Lineage") -> dict[str, Any]:
    keys = {node.node: node.key for node in graph.nodes}
    return {
        "nodes": [
            {**fields_of(node), "path": [keys[step] for step in graph.path_to(node.node)]}
            for node in graph.nodes
        ],
        "edges": [
            {**link._asdict(), "source": keys[link.source], "target": keys[link.target]}
            for link in graph.edges
        ],
        "truncated": graph.truncated,
    }


def _picture_of_nodes(graph: "Lineage") -> Picture:
    return Picture(
        roots=[graph.start],
        labels={node.node: _label(node) for node in graph.nodes},
        shapes={node.node: "cylinder" if node.type == "DATASET" else "box" for node in graph.nodes},
        links=[
            Link(
                link.source,
                link.target,
                label=f"via {link.via}" if link.via else "",
                dashed="OBSERVED" not in link.known_by,
            )
            for link in graph.edges
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
    from floe.catalog.column_lineage import list_row_sources, walk_columns

    dataset = find_dataset(session, name)
    also_read = list_row_sources(session, dataset) if "upstream" in sides else []
    walks = [(side, walk_columns(session, dataset, column, side, depth)) for side in sides]
    return [
        _Answer(
            side,
            _plain_columns(graph) | ({"also_read": also_read} if side == "upstream" else {}),
            _picture_of_columns(graph),
            sum(node.more for node in graph.columns),
            graph.truncated,
            also_read if side == "upstream" else (),
        )
        for side, graph in walks
    ]


def _plain_columns(graph: "ColumnLineage") -> dict[str, Any]:
    names = {(node.dataset_id, node.column): node.dataset for node in graph.columns}
    return {
        "columns": graph.columns,
        "edges": [
            {
                "source": {"dataset": names[link.source], "column": link.source.column},
                "target": {"dataset": names[link.target], "column": link.target.column},
                "kind": link.kind,
                "process": link.process,
            }
            for link in graph.edges
        ],
        "truncated": graph.truncated,
    }


def _picture_of_columns(graph: "ColumnLineage") -> Picture:
    labels: dict[Key, Text] = {
        (node.dataset_id, node.column): Text.assemble(
            (f"{node.dataset}.", "dim"),
            (node.column, "bold"),
            (MORE if node.more else "", "yellow"),
        )
        for node in graph.columns
    }
    return Picture(
        roots=[(node.dataset_id, node.column) for node in graph.columns if node.depth == 0],
        labels=labels,
        shapes=dict.fromkeys(labels, "plaintext"),
        links=[
            Link(link.source, link.target, label=f"{link.kind.lower()} by {link.process}")
            for link in graph.edges
        ],
    )


def _show(answers: list[_Answer]) -> None:
    for answer in answers:
        console.print(TITLES[answer.side], style="bold underline")
        trees = draw_trees(answer.picture, backwards=answer.side == "upstream")
        for tree in trees:
            console.print(tree)
        if not answer.picture.links:
            console.print("nothing known", style="dim")
        if answer.also_read:
            names = ", ".join(answer.also_read)
            console.print(f"{ALSO_READ}: {names}", markup=False, soft_wrap=True)
        if answer.more:
            cut = f"{answer.more} node(s) marked '{MORE.strip()}' have more neighbours: "
            console.print(f"{cut}use a larger --depth.", style="yellow", soft_wrap=True)
        elif answer.truncated:
            console.print(
                "The lineage is too large to show in full: use a smaller --depth.", style="yellow"
            )


def draw_trees(picture: Picture, *, backwards: bool = False) -> list[Tree]:
    """Draw a tree for each root, along the arrows or against them.

    A node that appears twice is drawn once, and named the second time.
    """
    drawn: set[Key] = set()
    neighbours = _neighbours(picture, backwards)
    return [_draw_tree(root, picture, neighbours, drawn) for root in picture.roots]


def _neighbours(picture: Picture, backwards: bool) -> dict[Key, list[tuple[Key, str]]]:
    neighbours: dict[Key, list[tuple[Key, str]]] = defaultdict(list)
    for link in picture.links:
        near, far = (link.target, link.source) if backwards else (link.source, link.target)
        neighbours[near].append((far, link.label))
    for far_ends in neighbours.values():
        far_ends.sort(key=lambda neighbour: (picture.labels[neighbour[0]].plain, neighbour[1]))
    return neighbours


def _draw_tree(
    root: Key, picture: Picture, neighbours: dict[Key, list[tuple[Key, str]]], drawn: set[Key]
) -> Tree:
    tree = Tree(picture.labels[root])
    drawn.add(root)
    waiting = [(tree, *neighbour) for neighbour in reversed(neighbours.get(root, ()))]
    while waiting:
        branch, node, label = waiting.pop()
        text = Text.assemble(picture.labels[node], (f"  {label}" if label else "", "dim"))
        if node in drawn:
            branch.add(text.append("  ↑ shown above", style="dim"))
            continue
        drawn.add(node)
        child = branch.add(text)
        waiting += [(child, *neighbour) for neighbour in reversed(neighbours.get(node, ()))]
    return tree


def write_dot(pictures: Iterable[Picture]) -> str:
    """Return pictures as one DOT graph for graphviz."""
    labels: dict[Key, Text] = {}
    shapes: dict[Key, str] = {}
    links: dict[Link, None] = {}
    for picture in pictures:
        labels |= picture.labels
        shapes |= picture.shapes
        links |= dict.fromkeys(picture.links)
    ids = {key: f"n{index}" for index, key in enumerate(labels)}
    nodes = [
        f"  {ids[key]} [label={_quote(label.plain)}, shape={shapes[key]}];"
        for key, label in labels.items()
    ]
    arrows = [
        f"  {ids[link.source]} -> {ids[link.target]}"
        f" [label={_quote(link.label)}, style={'dashed' if link.dashed else 'solid'}];"
        for link in links
    ]
    return "\n".join(["digraph lineage {", "  rankdir=LR;", *nodes, *arrows, "}"])


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
