"""Edges: who reads and writes what, as declared and as observed.

An edge is never deleted. One that is no longer declared ends, and opens again when it returns.
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
    """A place in the graph: a dataset or a process, by its number."""

    type: str
    id: int


@dataclass(frozen=True)
class NewEdge:
    """An edge to be written: data or control goes from its source to its target."""

    source: Node
    target: Node
    role: str
    transform: str | None = None


@dataclass(frozen=True)
class EdgeChanges:
    """What writing edges did to the graph."""

    added: int = 0
    reopened: int = 0
    ended: int = 0


def consumes(dataset_id: int, process_id: int, transform: str | None = None) -> NewEdge:
    """A process reads a dataset."""
    return NewEdge(Node(DATASET, dataset_id), Node(PROCESS, process_id), CONSUMES, transform)


def produces(process_id: int, dataset_id: int, transform: str | None = None) -> NewEdge:
    """A process writes a dataset."""
    return NewEdge(Node(PROCESS, process_id), Node(DATASET, dataset_id), PRODUCES, transform)


def triggers(first_id: int, then_id: int) -> NewEdge:
    """A process starts when another has ended, as a scheduler's conditions say."""
    return NewEdge(Node(PROCESS, first_id), Node(PROCESS, then_id), TRIGGERS)


def declare_edges(
    session: Session, edges: Iterable[NewEdge], declared_at: datetime | None = None
) -> EdgeChanges:
    """Write edges that somebody declares; those that had ended open again."""
    return _write_edges(session, list(edges), DECLARED, declared_at or clock.now())


def observe_edges(session: Session, edges: Iterable[NewEdge], seen_at: datetime) -> EdgeChanges:
    """Write edges that a run showed. Reports may come late and in any order, with one result."""
    return _write_edges(session, list(edges), OBSERVED, seen_at)


def redeclare_edges(
    session: Session,
    process_ids: Sequence[int],
    edges: Iterable[NewEdge],
    declared_at: datetime | None = None,
) -> EdgeChanges:
    """Make these the only declared edges of the processes: write them, end the others."""
    moment, wanted = declared_at or clock.now(), list(edges)
    keep = {_key(edge, DECLARED) for edge in wanted}
    declared = _declared_by(session, process_ids)
    gone = [row.edge_id for row in declared if row.ended_at is None and _row_key(row) not in keep]
    end_edges(session, gone, moment)
    written = declare_edges(session, wanted, moment)
    return EdgeChanges(written.added, written.reopened, ended=len(gone))


def end_edges(session: Session, edge_ids: Sequence[int], ended_at: datetime | None = None) -> None:
    """End edges that are open."""
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


def _write_edges(
    session: Session, edges: Sequence[NewEdge], known_by: str, moment: datetime
) -> EdgeChanges:
    wanted = {_key(edge, known_by): edge for edge in edges}
    known = {_row_key(row) for row in _stored(session, edges, known_by)}
    new = [_row(edge, known_by, moment) for key, edge in wanted.items() if key not in known]
    if new:
        store_of(session).upsert(session, LineageEdge, new, key=KEY, update=())
    # Read after the insert: another writer may have been first, and its times count too.
    stored = [row for row in _stored(session, edges, known_by) if _row_key(row) in wanted]
    _set_transforms(session, stored, wanted)
    _widen_sight(session, stored, moment)
    return EdgeChanges(len(new), _reopen(session, stored, moment))


def _stored(session: Session, edges: Sequence[NewEdge], known_by: str) -> list[Any]:
    # Looked up from the end with few edges: half the catalog may read one dataset, but no
    # process reads half the catalog.
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
    # A process declares what it reads, writes and waits for. Who waits for it is not its own.
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


def _widen_sight(session: Session, stored: Sequence[Any], moment: datetime) -> None:
    # The conditions stand in the statements too, so that a neighbour's newer time is not undone.
    later = [row.edge_id for row in stored if row.last_seen < moment]
    _update(session, later, LineageEdge.last_seen < moment, last_seen=moment)
    earlier = [row.edge_id for row in stored if row.first_seen > moment]
    _update(session, earlier, LineageEdge.first_seen > moment, first_seen=moment)


def _reopen(session: Session, stored: Sequence[Any], moment: datetime) -> int:
    ended = [row.edge_id for row in stored if row.ended_at and row.ended_at <= moment]
    _update(session, ended, LineageEdge.ended_at <= moment, ended_at=None)
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


def _row(edge: NewEdge, known_by: str, moment: datetime) -> dict[str, Any]:
    return {
        **dict(zip(KEY, _key(edge, known_by), strict=True)),
        "transform_meta": edge.transform,
        "first_seen": moment,
        "last_seen": moment,
        "created_at": clock.now(),
    }


def _key(edge: NewEdge, known_by: str) -> tuple[Any, ...]:
    return (*edge.source, *edge.target, edge.role, known_by)


def _row_key(row: Any) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in KEY)
