"""Builders for catalog tests: datasets, processes, runs, SLAs and edges."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.column_lineage import DIRECT, ColumnRef
from floe.catalog.edges import OBSERVED, EdgeChanges, NewEdge, write_edges
from floe.catalog.runs import STARTED
from floe.catalog.tables import ColumnEdge, ColumnSighting, Dataset, Process, ProcessRun, Sla

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)


def dataset(session: Session, name: str, **values: Any) -> int:
    """Add a dataset and return its id."""
    row = Dataset(
        **{
            "namespace": "lake",
            "name": name,
            "full_name": f"lake/{name}",
            "status": "ACTIVE",
            "needs_validation": False,
            "created_at": NOON,
            **values,
        }
    )
    session.add(row)
    session.flush()
    return row.dataset_id


def process(session: Session, key: str, **values: Any) -> int:
    """Add a process and return its id."""
    row = Process(
        **{
            "process_key": key,
            "name": key.rsplit("/", 1)[-1],
            "trigger_mode": "PROCESS",
            "status": "ACTIVE",
            "created_at": NOON,
            **values,
        }
    )
    session.add(row)
    session.flush()
    return row.process_id


def start_run(session: Session, run_uuid: str, process_id: int, **values: Any) -> ProcessRun:
    """Add a run that has just started."""
    now = clock.now()
    run = ProcessRun(
        **{
            "run_uuid": run_uuid,
            "process_id": process_id,
            "status": STARTED,
            "attempt": 1,
            "historical": False,
            "start_ts": now,
            "saw_success": False,
            "saw_failure": False,
            "created_at": now,
            **values,
        }
    )
    session.add(run)
    session.flush()
    return run


def sla(session: Session, name: str, **values: Any) -> int:
    """Add an SLA and return its id."""
    row = Sla(name=name, created_at=NOON, **values)
    session.add(row)
    session.flush()
    return row.sla_id


def observe_edges(session: Session, edges: Iterable[NewEdge], seen_at: datetime) -> EdgeChanges:
    """Write edges as if a run had reported them."""
    return write_edges(session, list(edges), OBSERVED, seen_at)


@dataclass(frozen=True)
class NewColumnEdge:
    """A column that a process creates from another."""

    source: ColumnRef
    target: ColumnRef
    process_id: int
    kind: str = DIRECT


def observe_column_edges(
    session: Session, edges: Iterable[NewColumnEdge], seen_at: datetime
) -> None:
    """Write a new column lineage for each process and target dataset of the edges."""
    lineages: defaultdict[tuple[int, int], list[NewColumnEdge]] = defaultdict(list)
    for edge in edges:
        lineages[edge.process_id, edge.target.dataset_id].append(edge)
    for (process_id, dataset_id), group in lineages.items():
        lineage_hash = hashlib.sha256(repr(group).encode()).hexdigest()
        session.add_all(_column_edge(edge, lineage_hash) for edge in group)
        session.add(
            ColumnSighting(
                process_id=process_id,
                dataset_id=dataset_id,
                lineage_hash=lineage_hash,
                first_seen=seen_at,
                last_seen=seen_at,
            )
        )
    session.flush()


def _column_edge(edge: NewColumnEdge, lineage_hash: str) -> ColumnEdge:
    return ColumnEdge(
        target_dataset_id=edge.target.dataset_id,
        target_column=edge.target.column,
        source_dataset_id=edge.source.dataset_id,
        source_column=edge.source.column,
        process_id=edge.process_id,
        kind=edge.kind,
        lineage_hash=lineage_hash,
    )
