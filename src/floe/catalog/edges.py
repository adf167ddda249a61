"""Edges: which processes read and write which datasets, declared and observed.

An edge is never deleted. If it is no longer declared, it ends; if it is declared again, it reopens.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, exists, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.stores import store_of
from floe.catalog.tables import LineageEdge, Process

DATASET, PROCESS = "DATASET", "PROCESS"
CONSUMES, PRODUCES, DERIVES, TRIGGERS = "CONSUMES", "PRODUCES", "DERIVES", "TRIGGERS"
DECLARED, OBSERVED = "DECLARED", "OBSERVED"

KEY = ("source_type", "source_id", "target_type", "target_id", "edge_role", "known_by")


class Node(NamedTuple):
    """A node of the graph: a dataset or a process, by id."""

    type: str
    id: int


@dataclass(frozen=True)
class NewEdge:
    """An edge to write: data or control flows from source to target."""

    source: Node
    target: Node
    role: str
    transform: str | None = None


@dataclass(frozen=True)
class EdgeChanges:
    """How many edges were added, reopened and ended."""

    added: int = 0
    reopened: int = 0
    ended: int = 0


def consumes(dataset_id: int, process_id: int, transform: str | None = None) -> NewEdge:
    """Build the edge of a process that reads a dataset."""
    return NewEdge(Node(DATASET, dataset_id), Node(PROCESS, process_id), CONSUMES, transform)


def produces(process_id: int, dataset_id: int, transform: str | None = None) -> NewEdge:
    """Build the edge of a process that writes a dataset."""
    return NewEdge(Node(PROCESS, process_id), Node(DATASET, dataset_id), PRODUCES, transform)


def triggers(upstream_id: int, downstream_id: int) -> NewEdge:
    """Build the edge of a process that its scheduler starts after another one."""
    return NewEdge(Node(PROCESS, upstream_id), Node(PROCESS, downstream_id), TRIGGERS)


def declare_edges(
    session: Session, edges: Iterable[NewEdge], declared_at: datetime | None = None
) -> EdgeChanges:
    """Write declared edges; reopen those that had ended."""
    return write_edges(session, list(edges), DECLARED, declared_at or clock.now())


def redeclare_edges(
    session: Session,
    process_ids: Sequence[int],
    edges: Iterable[NewEdge],
    declared_at: datetime | None = None,
) -> EdgeChanges:
    """Make these the only declared edges of the processes; end all others."""
    seen_at, wanted = declared_at or clock.now(), list(edges)
    keep = {_key(edge, DECLARED) for edge in wanted}
    declared = _declared_by(session, process_ids)
    ended = [row.edge_id for row in declared if row.ended_at is None and _row_key(row) not in keep]
    end_edges(session, ended, seen_at)
    written = declare_edges(session, wanted, seen_at)
    return EdgeChanges(written.added, written.reopened, ended=len(ended))


def end_edges(session: Session, edge_ids: Sequence[int], ended_at: datetime | None = None) -> None:
    """Set the end of edges that have none."""
    _update(session, edge_ids, LineageEdge.ended_at.is_(None), ended_at=ended_at or clock.now())


def list_consumers(session: Session, dataset_id: int) -> Sequence[Process]:
    """Return the processes that read a dataset directly."""
    reads = exists().where(
        LineageEdge.source_type == DATASET,
        LineageEdge.source_id == dataset_id,
        LineageEdge.target_type == PROCESS,
        LineageEdge.target_id == Process.process_id,
        LineageEdge.ended_at.is_(None),
    )
    return session.scalars(select(Process).where(reads).order_by(Process.process_key)).all()


def list_producers(session: Session, dataset_id: int) -> Sequence[Process]:
    """Return the processes that write a dataset directly."""
    writes = exists().where(
        LineageEdge.target_type == DATASET,
        LineageEdge.target_id == dataset_id,
        LineageEdge.source_type == PROCESS,
        LineageEdge.source_id == Process.process_id,
        LineageEdge.ended_at.is_(None),
    )
    return session.scalars(select(Process).where(writes).order_by(Process.process_key)).all()


def write_edges(
    session: Session, edges: Sequence[NewEdge], known_by: str, seen_at: datetime
) -> EdgeChanges:
    """Write declared or observed edges; the result is the same in any order of times."""
    wanted = {_key(edge, known_by): edge for edge in edges}
    known = {_row_key(row) for row in _stored(session, edges, known_by)}
    new = [_row(edge, known_by, seen_at) for key, edge in wanted.items() if key not in known]
    if new:
        store_of(session).upsert(session, LineageEdge, new, key=KEY, update=())
    # Read again after the insert: another writer may have inserted the same edge first.
    stored = [row for row in _stored(session, edges, known_by) if _row_key(row) in wanted]
    _set_transforms(session, stored, wanted)
    _extend_sightings(session, stored, seen_at)
    return EdgeChanges(len(new), _reopen(session, stored, seen_at))


def _stored(session: Session, edges: Sequence[NewEdge], known_by: str) -> list[Any]:
    # Look up edges by the end that has few: many processes may read one dataset, but a process
    # reads few datasets.
    owners: dict[tuple[str, str], set[int]] = defaultdict(set)
    for edge in edges:
        writes = (edge.source.type, edge.target.type) == (PROCESS, DATASET)
        side, owner = ("source", edge.source) if writes else ("target", edge.target)
        owners[side, owner.type].add(owner.id)
    return [
        row
        for (side, node_type), ids in owners.items()
        for row in _edges_at(session, side, node_type, sorted(ids), known_by)
    ]


def _declared_by(session: Session, process_ids: Sequence[int]) -> list[Any]:
    # A process declares what it reads, writes and waits for, not which processes wait for it.
    ins = _edges_at(session, "target", PROCESS, process_ids, DECLARED)
    outs = _edges_at(session, "source", PROCESS, process_ids, DECLARED)
    return [*ins, *(row for row in outs if row.target_type == DATASET)]


def _edges_at(
    session: Session, side: str, node_type: str, ids: Sequence[int], known_by: str
) -> Sequence[Any]:
    at = LineageEdge.__table__.c
    return session.execute(
        select(*at).where(
            at[f"{side}_type"] == node_type,
            store_of(session).among(at[f"{side}_id"], ids),
            at.known_by == known_by,
        )
    ).all()


def _set_transforms(
    session: Session, stored: Sequence[Any], wanted: dict[tuple[Any, ...], NewEdge]
) -> None:
    texts = ((row, wanted[_row_key(row)].transform) for row in stored)
    changed = [
        {"edge_id": row.edge_id, "transform_meta": text}
        for row, text in texts
        if text is not None and text != row.transform_meta
    ]
    if changed:
        session.execute(update(LineageEdge), changed)


def _extend_sightings(session: Session, stored: Sequence[Any], seen_at: datetime) -> None:
    # The statements repeat the conditions, so that they cannot undo a concurrent writer's update.
    later = [row.edge_id for row in stored if row.last_seen < seen_at]
    _update(session, later, LineageEdge.last_seen < seen_at, last_seen=seen_at)
    earlier = [row.edge_id for row in stored if row.first_seen > seen_at]
    _update(session, earlier, LineageEdge.first_seen > seen_at, first_seen=seen_at)


def _reopen(session: Session, stored: Sequence[Any], seen_at: datetime) -> int:
    ended = [row.edge_id for row in stored if row.ended_at and row.ended_at <= seen_at]
    _update(session, ended, LineageEdge.ended_at <= seen_at, ended_at=None)
    return len(ended)


def _update(
    session: Session, edge_ids: Sequence[int], condition: ColumnElement[bool], **values: Any
) -> None:
    if edge_ids:
        edge_id = LineageEdge.__table__.c.edge_id
        session.execute(
            update(LineageEdge)
            .where(store_of(session).among(edge_id, edge_ids), condition)
            .values(**values)
            .execution_options(synchronize_session=False)
        )


def _row(edge: NewEdge, known_by: str, seen_at: datetime) -> dict[str, Any]:
    return {
        **dict(zip(KEY, _key(edge, known_by), strict=True)),
        "transform_meta": edge.transform,
        "first_seen": seen_at,
        "last_seen": seen_at,
        "created_at": clock.now(),
    }


def _key(edge: NewEdge, known_by: str) -> tuple[Any, ...]:
    return (*edge.source, *edge.target, edge.role, known_by)


def _row_key(row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in KEY)
