"""Walk the graph: where data comes from, and what depends on it.

A walk is breadth-first with few queries per level, so its cost depends on the result, not on the
size of the catalog. Each node is visited once, so cycles end, and the first path to a node is a
shortest one.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

from msgspec import Struct
from sqlalchemy import Connection, Dialect, bindparam, func, or_, select
from sqlalchemy.orm import Session

from floe.catalog.datasets import find_dataset
from floe.catalog.edges import DATASET, DECLARED, DERIVES, OBSERVED, PROCESS, Node
from floe.catalog.errors import DatasetNotFoundError, ProcessNotFoundError
from floe.catalog.processes import find_process
from floe.catalog.queries import PreparedSelect
from floe.catalog.stores import Store, store_of
from floe.catalog.tables import Dataset, LineageEdge, Process
from floe.catalog.tables.types import UtcTime

Direction = Literal["upstream", "downstream", "both"]
Kind = Literal["datasets", "processes", "both"]

DEFAULT_DEPTH = 5
MAX_NODES = 10_000
# At most this many rows are read per level, even if a node has more neighbours.
MAX_ROWS = 200_000

# Shown instead of a node that no longer exists: name, key, status, team, technology.
GONE = ("(gone)", "(gone)", "GONE", None, None)

_SHOWN = {"datasets": DATASET, "processes": PROCESS}
_KNOWN_BY = {DECLARED: (DECLARED,), OBSERVED: (OBSERVED,)}


class LineageNode(Struct, gc=False):
    """A dataset or process that a walk reached."""

    type: str
    id: int
    name: str
    key: str  # a dataset's full name, a process's key
    status: str
    team: str | None
    technology: str | None  # a dataset's format, a process's technology
    depth: int
    more: bool  # the walk stopped here although the graph continues

    @property
    def node(self) -> Node:
        return Node(self.type, self.id)


class LineageLink(NamedTuple):
    """An edge that a walk followed, in the direction of the data."""

    source: Node
    target: Node
    role: str
    known_by: tuple[str, ...]
    via: str | None  # the skipped node, if only datasets or only processes are shown


@dataclass(frozen=True)
class Lineage:
    """The result of a walk: nodes in order of distance from the start."""

    start: Node
    nodes: Sequence[LineageNode]
    edges: Sequence[LineageLink]
    truncated: bool  # the walk stopped early, by depth or by size
    trails: Sequence[dict[Node, Node | None]] = field(repr=False)  # each node's predecessor

    def path_to(self, node: Node) -> list[Node]:
        """Return one shortest path from the start to a node, both included."""
        paths = (_trace(trail, node) for trail in self.trails if node in trail)
        return min(paths, key=len)


def _trace(trail: dict[Node, Node | None], node: Node) -> list[Node]:
    path, step = [node], trail[node]
    while step is not None:
        path.append(step)
        step = trail[step]
    return path[::-1]


def walk_lineage(
    session: Session,
    start: Node,
    direction: Direction = "downstream",
    depth: int = DEFAULT_DEPTH,
    *,
    kind: Kind = "both",
    as_of: datetime | None = None,
    max_nodes: int = MAX_NODES,
) -> Lineage:
    """Walk from a node and return everything within `depth` steps of it.

    A step leads to the next datasets and the processes in between; if only processes are shown,
    to the next processes. Nodes where the walk stopped although the graph continues have `more`
    set. Ended edges are followed only if they were open at `as_of`. A walk that reaches more than
    `max_nodes` nodes stops and sets `truncated`.
    """
    session.flush()
    graph = _Graph(session.connection(), store_of(session), as_of)
    sides = ("downstream", "upstream") if direction == "both" else (direction,)
    if kind == "both":
        walks = [_walk_both(start, graph, side, depth, max_nodes) for side in sides]
    else:
        walks = [
            _walk(start, side, depth, _Collapsed(graph, side, _SHOWN[kind]), max_nodes)
            for side in sides
        ]
    return _describe(graph, start, walks)


def find_node(session: Session, name: str) -> Node:
    """Find a dataset, or else a process, by name, key or id."""
    try:
        return Node(DATASET, find_dataset(session, name).dataset_id)
    except DatasetNotFoundError as no_dataset:
        try:
            return Node(PROCESS, find_process(session, name).process_id)
        except ProcessNotFoundError:
            raise no_dataset from None


# (source, target, role, skipped node) → declared, observed or both.
_Links = dict[tuple[Node, Node, str, Node | None], tuple[str, ...]]

# One step of a walk, upstream or downstream: (near, far, role, known by, skipped node). A plain
# tuple, because there is one for every row.
_Hop = tuple[Node, Node, str, tuple[str, ...], Node | None]


class _Graph:
    """The catalog's edges and nodes, read in batches."""

    def __init__(self, connection: Connection, store: Store, as_of: datetime | None) -> None:
        self._connection, self._store = connection, store
        self._as_of = {} if as_of is None else {"as_of": as_of}
        self.truncated = False

    def hops(self, side: str, nodes: Iterable[Node]) -> Iterator[_Hop]:
        """Return the hops from these nodes to their neighbours."""
        for near_type, at in _by_type(nodes):
            query = _edges_from(
                self._store, self._connection.dialect, side, near_type, past=bool(self._as_of)
            )
            rows = query.fetch(self._connection, MAX_ROWS, ids=list(at), **self._as_of)
            self.truncated = self.truncated or len(rows) == MAX_ROWS
            for near_id, far_type, far_id, role, known_by in rows:
                yield at[near_id], Node(far_type, far_id), role, _KNOWN_BY[known_by], None

    def describe(self, nodes: Sequence[Node]) -> dict[Node, Any]:
        """Return id, name, key, status, team and technology of nodes."""
        shown: dict[Node, Any] = {}
        for node_type, at in _by_type(nodes):
            query = _node_rows(self._store, self._connection.dialect, node_type)
            rows = query.fetch(self._connection, len(at), ids=list(at))
            shown.update((at[row[0]], row) for row in rows)
        # Two datasets may have been joined since the edges were read.
        gone = [node for node in nodes if node not in shown]
        return shown | {node: (node.id, *GONE) for node in gone}


def _lineage_node(node: Node, row: Any, depth: int, *, more: bool) -> LineageNode:
    node_id, name, key, status, team, technology = row
    return LineageNode(node.type, node_id, name, key, status, team, technology, depth, more)


@dataclass
class _Walk:
    """The state of a walk."""

    side: str
    levels: list[list[Node]]
    parents: dict[Node, Node | None]
    links: _Links
    truncated: bool = False
    more: set[Node] = field(default_factory=set)
    """Nodes with edges that were not followed because of the depth limit."""

    def take(self, hops: Iterable[_Hop], max_nodes: int) -> list[Node]:
        """Follow hops; return the new nodes."""
        level: list[Node] = []
        parents, links, down = self.parents, self.links, self.side == "downstream"
        for near, far, role, known_by, via in hops:
            if far not in parents:
                if len(parents) >= max_nodes:
                    self.truncated = True
                    continue
                parents[far] = near
                level.append(far)
            link = (near, far, role, via) if down else (far, near, role, via)
            known_before = links.get(link)
            links[link] = _either(known_before, known_by) if known_before else known_by
        return level


# Returns the hops from nodes to their neighbours.
_HopsOf = Callable[[Iterable[Node]], Iterable[_Hop]]


def _walk_both(start: Node, graph: _Graph, side: str, depth: int, max_nodes: int) -> _Walk:
    """Walk datasets and processes; each step includes a process and its datasets."""
    walk = _Walk(side, [[start]], {start: None}, {})
    hops_of = partial(graph.hops, side)
    frontier, control = [start], list[_Hop]()
    for _ in range(depth):
        if walk.truncated or not (frontier or control):
            break
        level = walk.take([*control, *hops_of(frontier)], max_nodes)
        onward = list(hops_of([node for node in level if node.type == PROCESS]))
        # A hop from process to process is a separate step.
        control = [hop for hop in onward if hop[1].type == PROCESS]
        level += walk.take((hop for hop in onward if hop[1].type == DATASET), max_nodes)
        walk.levels.append(level)
        frontier = [node for node in level if node.type == DATASET]
    if not walk.truncated:
        walk.more = {hop[0] for hop in (*control, *hops_of(frontier))}
    return walk


def _walk(start: Node, side: str, depth: int, hops_of: _HopsOf, max_nodes: int) -> _Walk:
    walk = _Walk(side, [[start]], {start: None}, {})
    for _ in range(depth):
        if not walk.levels[-1] or walk.truncated:
            break
        walk.levels.append(walk.take(hops_of(walk.levels[-1]), max_nodes))
    if not walk.truncated:
        walk.more = {hop[0] for hop in hops_of(walk.levels[-1])}
    return walk


class _Collapsed:
    """The graph without one kind of node: a hop skips exactly one such node.

    Triggers between processes carry no data, so they do not connect datasets.
    """

    def __init__(self, graph: _Graph, side: str, shown: str) -> None:
        self._hops = partial(graph.hops, side)
        self._shown = shown
        self._beyond: dict[Node, dict[Node, tuple[str, ...]]] = {}

    def __call__(self, nodes: Iterable[Node]) -> Iterator[_Hop]:
        between: dict[Node, dict[Node, tuple[str, ...]]] = defaultdict(dict)
        for near, far, role, known_by, _ in self._hops(nodes):
            if far.type == self._shown:
                yield near, far, role, known_by, None
            elif near.type == self._shown:
                between[far][near] = _either(between[far].get(near, ()), known_by)
        self._look_beyond([node for node in between if node not in self._beyond])
        for middle, nears in between.items():
            for near, known_in in nears.items():
                for far, known_out in self._beyond[middle].items():
                    yield near, far, DERIVES, _both(known_in, known_out), middle

    def _look_beyond(self, middles: Sequence[Node]) -> None:
        self._beyond.update((middle, {}) for middle in middles)
        for middle, far, _, known_by, _ in self._hops(middles):
            if far.type == self._shown:
                far_known = self._beyond[middle]
                far_known[far] = _either(far_known.get(far, ()), known_by)


def _either(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    # An edge has one row if declared and another if observed.
    return tuple(sorted({*first, *second}))


def _both(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    # A path is declared or observed if both its halves are; if they differ, combine them.
    return tuple(sorted(set(first) & set(second))) or _either(first, second)


def _describe(graph: _Graph, start: Node, walks: Sequence[_Walk]) -> Lineage:
    depths: dict[Node, int] = {}
    links: _Links = {}
    for walk in walks:
        links.update(walk.links)
        for depth, level in enumerate(walk.levels):
            depths.update((node, depth) for node in level if depth < depths.get(node, depth + 1))
    between = {via for _, _, _, via in links if via}
    shown = graph.describe([*depths, *between])
    more = {node for walk in walks for node in walk.more}
    return Lineage(
        start,
        [
            _lineage_node(node, shown[node], depth, more=node in more)
            for node, depth in depths.items()
        ],
        [
            LineageLink(source, target, role, known_by, via and shown[via][2])
            for (source, target, role, via), known_by in links.items()
        ],
        graph.truncated or bool(more) or any(walk.truncated for walk in walks),
        [walk.parents for walk in walks],
    )


def _by_type(nodes: Iterable[Node]) -> Iterable[tuple[str, dict[int, Node]]]:
    by_type: dict[str, dict[int, Node]] = {}
    for node in nodes:
        by_type.setdefault(node[0], {})[node[1]] = node
    return by_type.items()


# Building a statement costs more than running it, so each is cached.
@lru_cache(maxsize=64)
def _edges_from(
    store: Store, dialect: Dialect, side: str, near_type: str, *, past: bool
) -> PreparedSelect:
    edge = LineageEdge.__table__.c
    near, far = ("source", "target") if side == "downstream" else ("target", "source")
    statement = (
        select(
            edge[f"{near}_id"],
            edge[f"{far}_type"],
            edge[f"{far}_id"],
            edge.edge_role,
            edge.known_by,
        )
        .where(edge[f"{near}_type"] == near_type)
        .where(store.among(edge[f"{near}_id"], "ids"))
    )
    if not past:
        return PreparedSelect(statement.where(edge.ended_at.is_(None)), dialect)
    as_of = bindparam("as_of", type_=UtcTime())
    still_open = or_(edge.ended_at.is_(None), edge.ended_at > as_of)
    return PreparedSelect(statement.where(edge.first_seen <= as_of, still_open), dialect)


@lru_cache(maxsize=16)
def _node_rows(store: Store, dialect: Dialect, node_type: str) -> PreparedSelect:
    shown: tuple[Any, ...]
    if node_type == DATASET:
        of = Dataset.__table__.c
        shown = (of.dataset_id, of.name, of.full_name, of.status, of.owner_team, of.default_format)
    else:
        of = Process.__table__.c
        name = func.coalesce(of.name, of.process_key)
        shown = (of.process_id, name, of.process_key, of.status, of.team, of.technology)
    return PreparedSelect(select(*shown).where(store.among(shown[0], "ids")), dialect)
