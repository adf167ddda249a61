"""Column edges: which column was seen to feed which, through which process.

What a process and a dataset have is one column lineage as a whole. Each distinct one is stored
once, under its hash; the one that was seen last holds.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, or_, select, update
from sqlalchemy.orm import Session, aliased

from floe.catalog.stores import store_of
from floe.catalog.tables import ColumnEdge, ColumnSighting

DIRECT, AGGREGATE, FILTER, JOIN = "DIRECT", "AGGREGATE", "FILTER", "JOIN"
ALL_COLUMNS = "*"
"""As a target: the rows as a whole, such as of a filter. As a source: only the rows count."""

EDGE_KEY = (
    "target_dataset_id",
    "target_column",
    "source_dataset_id",
    "source_column",
    "process_id",
    "kind",
    "lineage_hash",
)
SIGHTING_KEY = ("process_id", "dataset_id", "lineage_hash")


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
    """Write the column lineages that a run showed, each process and target as a whole."""
    lineages: defaultdict[tuple[int, int], set[tuple[Any, ...]]] = defaultdict(set)
    for edge in edges:
        key = (*edge.target, *edge.source, edge.process_id, edge.kind)
        lineages[edge.process_id, edge.target.dataset_id].add(key)
    rows: list[dict[str, Any]] = []
    sightings: list[tuple[int, int, str]] = []
    for (process_id, dataset_id), keys in lineages.items():
        lineage_hash = hashlib.sha256(repr(sorted(keys)).encode()).hexdigest()
        rows += [dict(zip(EDGE_KEY, (*key, lineage_hash), strict=True)) for key in sorted(keys)]
        sightings.append((process_id, dataset_id, lineage_hash))
    store = store_of(session)
    store.upsert(session, ColumnEdge, rows, key=EDGE_KEY, update=())
    times: dict[str, Any] = {"first_seen": seen_at, "last_seen": seen_at}
    seen = [{**dict(zip(SIGHTING_KEY, key, strict=True)), **times} for key in sightings]
    store.upsert(session, ColumnSighting, seen, key=SIGHTING_KEY, update=())
    for sighting in sightings:
        _widen(session, *sighting, seen_at=seen_at)


def _widen(
    session: Session, process_id: int, dataset_id: int, lineage_hash: str, *, seen_at: datetime
) -> None:
    """Reports come late and in any order: the span of a sighting only grows."""
    same = (
        ColumnSighting.process_id == process_id,
        ColumnSighting.dataset_id == dataset_id,
        ColumnSighting.lineage_hash == lineage_hash,
    )
    later = update(ColumnSighting).where(*same, ColumnSighting.last_seen < seen_at)
    session.execute(later.values(last_seen=seen_at))
    earlier = update(ColumnSighting).where(*same, ColumnSighting.first_seen > seen_at)
    session.execute(earlier.values(first_seen=seen_at))


def is_current() -> ColumnElement[bool]:
    """Say that an edge belongs to the lineage that was seen last for its process and dataset."""
    sighting, newer = aliased(ColumnSighting), aliased(ColumnSighting)
    superseded = (
        select(newer.process_id)
        .where(
            newer.process_id == sighting.process_id,
            newer.dataset_id == sighting.dataset_id,
            or_(
                newer.last_seen > sighting.last_seen,
                and_(
                    newer.last_seen == sighting.last_seen,
                    newer.lineage_hash > sighting.lineage_hash,
                ),
            ),
        )
        .exists()
    )
    return (
        select(sighting.process_id)
        .where(
            sighting.process_id == ColumnEdge.process_id,
            sighting.dataset_id == ColumnEdge.target_dataset_id,
            sighting.lineage_hash == ColumnEdge.lineage_hash,
            ~superseded,
        )
        .exists()
    )
