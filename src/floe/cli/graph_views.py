"""Ways to look at a graph: a tree for the terminal, DOT for graphviz."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from rich.text import Text
from rich.tree import Tree

Key = Hashable


@dataclass(frozen=True)
class Link:
    """An arrow, and what to say of it. A dashed one is not certain."""

    source: Key
    target: Key
    said: str = ""
    dashed: bool = False


@dataclass(frozen=True)
class Picture:
    """A graph to look at: where to start, what to call each node, and the arrows."""

    roots: Sequence[Key]
    labels: dict[Key, Text]
    shapes: dict[Key, str]
    links: Sequence[Link]


def draw_trees(picture: Picture, *, backwards: bool = False) -> list[Tree]:
    """Draw what the arrows of each root lead to, or where they come from.

    What was drawn before is named again, not drawn again.
    """
    drawn: set[Key] = set()
    ways = _ways(picture, backwards)
    return [_draw_tree(root, picture, ways, drawn) for root in picture.roots]


def _ways(picture: Picture, backwards: bool) -> dict[Key, list[tuple[Key, str]]]:
    ways: dict[Key, list[tuple[Key, str]]] = defaultdict(list)
    for link in picture.links:
        near, far = (link.target, link.source) if backwards else (link.source, link.target)
        ways[near].append((far, link.said))
    for far_ends in ways.values():
        far_ends.sort(key=lambda way: (picture.labels[way[0]].plain, way[1]))
    return ways


def _draw_tree(
    root: Key, picture: Picture, ways: dict[Key, list[tuple[Key, str]]], drawn: set[Key]
) -> Tree:
    tree = Tree(picture.labels[root])
    drawn.add(root)
    waiting = [(tree, *way) for way in reversed(ways.get(root, ()))]
    while waiting:
        branch, node, said = waiting.pop()
        text = Text.assemble(picture.labels[node], (f"  {said}" if said else "", "dim"))
        if node in drawn:
            branch.add(text.append("  ↑ shown above", style="dim"))
            continue
        drawn.add(node)
        twig = branch.add(text)
        waiting += [(twig, *way) for way in reversed(ways.get(node, ()))]
    return tree


def write_dot(pictures: Iterable[Picture]) -> str:
    """Write pictures as one graph for graphviz."""
    labels: dict[Key, Text] = {}
    shapes: dict[Key, str] = {}
    links: dict[Link, None] = {}
    for picture in pictures:
        labels |= picture.labels
        shapes |= picture.shapes
        links |= dict.fromkeys(picture.links)
    numbers = {key: f"n{number}" for number, key in enumerate(labels)}
    nodes = [
        f"  {numbers[key]} [label={_quote(label.plain)}, shape={shapes[key]}];"
        for key, label in labels.items()
    ]
    arrows = [
        f"  {numbers[link.source]} -> {numbers[link.target]}"
        f" [label={_quote(link.said)}, style={'dashed' if link.dashed else 'solid'}];"
        for link in links
    ]
    return "\n".join(["digraph lineage {", "  rankdir=LR;", *nodes, *arrows, "}"])


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
