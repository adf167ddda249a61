"""Column edges: which column was seen to feed which, through which process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from floe.catalog.database import store_of
from floe.catalog.tables import ColumnEdge

DIRECT, AGGREGATE, FILTER, JOIN = "DIRECT", "AGGREGATE", "FILTER", "JOIN"

KEY = (
    "target_dataset_id",
    "target_column",
    "source_dataset_id",
    "source_column",
    "process_id",
    "kind",
)


class ColumnRef(NamedTuple):
    """A column of a dataset, the dataset by its number."""

    dataset_id: int
    column: str


@dataclass(frozen=True)
class NewColumnEdge:
    """A column that a process makes from another: taken over, aggregated, filtered or joined by."""

    source: ColumnRef
    target: ColumnRef
    process_id: int
    kind: str = DIRECT


def observe_column_edges(
    session: Session, edges: Iterable[NewColumnEdge], seen_at: datetime
) -> None:
    """Write edges that a run showed. Reports may come late and in any order, with one result."""
    keys = {(*edge.target, *edge.source, edge.process_id, edge.kind) for edge in edges}
    if not keys:
        return
    times = {"first_seen": seen_at, "last_seen": seen_at}
    rows = [{**dict(zip(KEY, key, strict=True)), **times} for key in sorted(keys)]
    store_of(session).upsert(session, ColumnEdge, rows, key=KEY, update=())
    stored = [row for row in _stored(session, keys) if tuple(row[1:7]) in keys]
    later = [row.column_edge_id for row in stored if row.last_seen < seen_at]
    _update(session, later, ColumnEdge.last_seen < seen_at, last_seen=seen_at)
    earlier = [row.column_edge_id for row in stored if row.first_seen > seen_at]
    _update(session, earlier, ColumnEdge.first_seen > seen_at, first_seen=seen_at)


def _stored(session: Session, keys: Iterable[tuple[Any, ...]]) -> Sequence[Any]:
    at, among = ColumnEdge.__table__.c, store_of(session).among
    columns = (at.column_edge_id, *(at[name] for name in KEY), at.first_seen, at.last_seen)
    return session.execute(
        select(*columns).where(
            among(at.target_dataset_id, sorted({key[0] for key in keys})),
            among(at.process_id, sorted({key[4] for key in keys})),
        )
    ).all()


def _update(session: Session, ids: Sequence[int], condition: Any, **values: Any) -> None:
    # The condition stands in the statement too, so that a neighbour's newer time is not undone.
    if ids:
        session.execute(
            update(ColumnEdge)
            .where(store_of(session).among(ColumnEdge.__table__.c.column_edge_id, ids), condition)
            .values(**values)
            .execution_options(synchronize_session=False)
        )
