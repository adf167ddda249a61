"""Drift: edges that are declared and never seen, or seen and not declared."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session, aliased

from floe.catalog.edges import CONSUMES, DATASET, DECLARED, OBSERVED, PROCESS, PRODUCES
from floe.catalog.runs import SUCCESS
from floe.catalog.tables import Dataset, LineageEdge, Process, ProcessRun

UNOBSERVED, UNDECLARED = "UNOBSERVED", "UNDECLARED"
# How many edges one page looks at.
EDGES_AT_ONCE = 3_000
_KINDS = {DECLARED: UNOBSERVED, OBSERVED: UNDECLARED}


@dataclass(frozen=True)
class Drift:
    """An edge on which declaration and observation disagree."""

    kind: str  # UNOBSERVED or UNDECLARED
    edge_id: int
    role: str
    process_id: int
    process_key: str
    dataset_id: int
    dataset: str
    last_seen: datetime


def list_drift(
    session: Session,
    *,
    process_id: int | None = None,
    dataset_id: int | None = None,
    after: int = 0,
    limit: int = 1000,
) -> list[Drift]:
    """Return where declaration and observation disagree, in the order of edge numbers.

    An edge is UNOBSERVED once its process has succeeded after the declaration without showing
    it. It is UNDECLARED where somebody declares the process, or another writer of the dataset:
    work that nobody has declared at all is not drift.
    """
    query = _open_edges().where(LineageEdge.edge_id > after).limit(limit)
    if process_id is not None:
        query = query.where(_touches(PROCESS, process_id))
    if dataset_id is not None:
        query = query.where(_touches(DATASET, dataset_id))
    return _fetch(session, query)


def page_drift(
    session: Session,
    limit: int,
    *,
    process_id: int | None = None,
    dataset_id: int | None = None,
    after: int = 0,
) -> tuple[list[Drift], int | None]:
    """Return a page of drift, and the edge number that the next page starts after, if any.

    A page looks at no more than EDGES_AT_ONCE edges, however many there are: it can be empty and
    still have a next page.
    """
    if process_id is not None or dataset_id is not None:
        drift = list_drift(
            session, process_id=process_id, dataset_id=dataset_id, after=after, limit=limit + 1
        )
        return drift[:limit], drift[limit - 1].edge_id if len(drift) > limit else None
    until = after + EDGES_AT_ONCE
    query = _open_edges().where(LineageEdge.edge_id > after, LineageEdge.edge_id <= until)
    drift = _fetch(session, query.limit(limit + 1))
    if len(drift) > limit:
        return drift[:limit], drift[limit - 1].edge_id
    last = session.scalar(select(func.max(LineageEdge.edge_id))) or 0
    return drift, until if until < last else None


def _fetch(session: Session, query: Select[*tuple[Any, ...]]) -> list[Drift]:
    rows: Any = session.execute(query.where(or_(_is_unobserved(), _is_undeclared())))
    return [Drift(_KINDS[known_by], *rest) for known_by, *rest in rows]


def _touches(kind: str, number: int) -> ColumnElement[bool]:
    """Select the edges of a process or a dataset, which the indexes of both ends find."""
    edge = LineageEdge
    return or_(
        and_(edge.source_type == kind, edge.source_id == number),
        and_(edge.target_type == kind, edge.target_id == number),
    )


def _open_edges() -> Select[*tuple[Any, ...]]:
    written = LineageEdge.source_type == PROCESS
    process_id = case((written, LineageEdge.source_id), else_=LineageEdge.target_id)
    dataset_id = case((written, LineageEdge.target_id), else_=LineageEdge.source_id)
    return (
        select(
            LineageEdge.known_by,
            LineageEdge.edge_id,
            LineageEdge.edge_role,
            Process.process_id,
            Process.process_key,
            Dataset.dataset_id,
            Dataset.full_name,
            LineageEdge.last_seen,
        )
        .join(Process, Process.process_id == process_id)
        .join(Dataset, Dataset.dataset_id == dataset_id)
        .where(LineageEdge.edge_role.in_((CONSUMES, PRODUCES)), LineageEdge.ended_at.is_(None))
        .order_by(LineageEdge.edge_id)
    )


def _is_unobserved() -> ColumnElement[bool]:
    ran_since = _any(
        ProcessRun.process_id == Process.process_id,
        ProcessRun.status == SUCCESS,
        ProcessRun.end_ts >= LineageEdge.first_seen,
    )
    return and_(LineageEdge.known_by == DECLARED, ~_has_twin(OBSERVED), ran_since)


def _is_undeclared() -> ColumnElement[bool]:
    declared_work = or_(_declares("target"), _declares("source"), _has_declared_writer())
    return and_(LineageEdge.known_by == OBSERVED, ~_has_twin(DECLARED), declared_work)


def _declares(side: str) -> ColumnElement[bool]:
    own = aliased(LineageEdge)
    return _any(
        getattr(own, f"{side}_type") == PROCESS,
        getattr(own, f"{side}_id") == Process.process_id,
        own.known_by == DECLARED,
        own.ended_at.is_(None),
    )


def _has_declared_writer() -> ColumnElement[bool]:
    writer = aliased(LineageEdge)
    declared = _any(
        writer.target_type == DATASET,
        writer.target_id == Dataset.dataset_id,
        writer.edge_role == PRODUCES,
        writer.known_by == DECLARED,
        writer.ended_at.is_(None),
    )
    return and_(LineageEdge.edge_role == PRODUCES, declared)


def _has_twin(known_by: str) -> ColumnElement[bool]:
    twin = aliased(LineageEdge)
    return _any(
        twin.source_type == LineageEdge.source_type,
        twin.source_id == LineageEdge.source_id,
        twin.target_type == LineageEdge.target_type,
        twin.target_id == LineageEdge.target_id,
        twin.edge_role == LineageEdge.edge_role,
        twin.known_by == known_by,
        twin.ended_at.is_(None),
    )


def _any(*conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """Tell whether a row meets the conditions, by looking for one row each time.

    EXISTS says the same, but PostgreSQL answers it by reading the whole table of edges first,
    which takes longer the larger the catalog is.
    """
    return select(literal(1)).where(*conditions).limit(1).scalar_subquery().is_not(None)
