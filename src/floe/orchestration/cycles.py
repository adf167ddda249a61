"""Leave out dependencies that would close a circle. Pure.

A process may read what it makes itself, as of the day before. In time that is no circle; in a graph
of assets without time it is one.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

Node = TypeVar("Node")


def without_cycles(
    upstream: Mapping[Node, Sequence[Node]], nodes: Iterable[Node], wanted: Iterable[Node]
) -> list[Node]:
    """Return those wanted dependencies of some nodes that do not stand on these nodes."""
    ends = set(nodes)
    return [one for one in wanted if not _reaches(upstream, one, ends)]


def _reaches(upstream: Mapping[Node, Sequence[Node]], start: Node, ends: set[Node]) -> bool:
    seen, left = {start}, [start]
    while left:
        node = left.pop()
        if node in ends:
            return True
        new = [one for one in upstream.get(node, ()) if one not in seen]
        seen.update(new)
        left += new
    return False
