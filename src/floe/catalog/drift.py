"""Drift: where events and declarations differ, and what stewards decide.

Drift is an edge that is declared and never observed, or observed and not declared. A drift claim
is a statement of an event that contradicts a declaration; a steward accepts or dismisses it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, func, literal, or_, select
from sqlalchemy.orm import Session, aliased

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.edges import CONSUMES, DATASET, DECLARED, OBSERVED, PROCESS, PRODUCES
from floe.catalog.errors import NotFoundError, WrongStateError
from floe.catalog.joins.joining import SAME_DATASET, join_datasets, rank
from floe.catalog.runs import SUCCESS
from floe.catalog.tables import Dataset, DriftClaim, LineageEdge, Process, ProcessRun
from floe.errors import FloeError

UNOBSERVED, UNDECLARED = "UNOBSERVED", "UNDECLARED"

# How many edges one page reads.
EDGES_AT_ONCE = 3_000

_KINDS = {DECLARED: UNOBSERVED, OBSERVED: UNDECLARED}


@dataclass(frozen=True)
class Drift:
    """An edge that is only declared or only observed."""

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
    """Return drift, sorted by edge id.

    A declared edge is UNOBSERVED if its process succeeded after the declaration and the edge was
    never observed. An observed edge is UNDECLARED if its process is declared, or another writer
    of its dataset is. Edges of processes that nobody declared are not drift.
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
    """Return a page of drift, and the edge id after which the next page starts.

    A page reads at most EDGES_AT_ONCE edges, so it can be empty although a next page exists.
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


def _touches(kind: str, node_id: int) -> ColumnElement[bool]:
    """Select the edges of a process or dataset, using the index of each end."""
    edge = LineageEdge
    return or_(
        and_(edge.source_type == kind, edge.source_id == node_id),
        and_(edge.target_type == kind, edge.target_id == node_id),
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
    return and_(LineageEdge.known_by == DECLARED, ~_is_also(OBSERVED), ran_since)


def _is_undeclared() -> ColumnElement[bool]:
    declared_work = or_(_declares("target"), _declares("source"), _has_declared_writer())
    return and_(LineageEdge.known_by == OBSERVED, ~_is_also(DECLARED), declared_work)


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


def _is_also(known_by: str) -> ColumnElement[bool]:
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
    """Return whether any row meets the conditions, as a subquery with LIMIT 1.

    Not EXISTS, because PostgreSQL would then read the whole table of edges first, which is slow
    in a large catalog.
    """
    return select(literal(1)).where(*conditions).limit(1).scalar_subquery().is_not(None)


# A job outside floe announced a version of a dataset that floe writes itself.
FOREIGN_VERSION = "FOREIGN_VERSION"

OPEN, ACCEPTED, DISMISSED = "OPEN", "ACCEPTED", "DISMISSED"


class ClaimNotFoundError(NotFoundError):
    """No drift claim has this id."""

    def __init__(self, claim_id: int) -> None:
        super().__init__(f"No drift claim with id {claim_id}. List them with: floe drift")


class NotAcceptableError(WrongStateError):
    """A drift claim cannot be accepted, only dismissed."""

    def __init__(self, claim_id: int) -> None:
        FloeError.__init__(
            self,
            f"Drift claim {claim_id} cannot be accepted: another job announced a version of a "
            "dataset that floe writes. Stop that job or let it write another dataset, then "
            "dismiss the claim.",
        )


@dataclass(frozen=True)
class ClaimRow:
    """A drift claim with the names of its datasets or process."""

    claim_id: int
    kind: str
    status: str
    dataset_id: int
    dataset: str
    subject_id: int
    subject: str  # the other dataset, or the process that claims to write this one
    first_seen: datetime
    last_seen: datetime
    detail: Any
    decided_by: str | None
    decided_at: datetime | None
    comment: str | None


def list_drift_claims(
    session: Session,
    *,
    status: str | None = OPEN,
    dataset_id: int | None = None,
    after: int = 0,
    limit: int = 1000,
) -> list[ClaimRow]:
    """Return claims sorted by id; status None returns claims of any status."""
    query = _claims().where(DriftClaim.claim_id > after).limit(limit)
    if status is not None:
        query = query.where(DriftClaim.status == status)
    if dataset_id is not None:
        query = query.where(_concerns(dataset_id))
    rows: Any = session.execute(query.order_by(DriftClaim.claim_id))
    return [ClaimRow(**row._mapping) for row in rows]


def get_drift_claim(session: Session, claim_id: int) -> ClaimRow:
    """Return the claim with this id, open or decided."""
    row: Any = session.execute(_claims().where(DriftClaim.claim_id == claim_id)).one_or_none()
    if row is None:
        raise ClaimNotFoundError(claim_id)
    return ClaimRow(**row._mapping)


def accept_claim(session: Session, claim_id: int, *, actor: str, comment: str | None = None) -> str:
    """Join the two datasets of a claim; return the name of the remaining one.

    The declared dataset remains, else the one that floe writes, else the curated one, else the
    older one.
    """
    claim = _open_claim(session, claim_id, ACCEPTED)
    if claim.kind != SAME_DATASET:
        raise NotAcceptableError(claim_id)
    pair = [get_dataset(session, dataset_id) for dataset_id in (claim.dataset_id, claim.subject_id)]
    remaining, joined = sorted(pair, key=rank)
    _decide(session, claim, ACCEPTED, actor=actor, comment=comment)
    # The claim is no longer needed: the join has its own record and audit entry.
    session.delete(claim)
    session.flush()
    reason = comment or f"accepted drift claim {claim_id}"
    return join_datasets(session, remaining, joined, actor=actor, reason=reason).full_name


def dismiss_claim(
    session: Session, claim_id: int, *, actor: str, comment: str | None = None
) -> None:
    """Dismiss a claim. It stays dismissed even if events repeat it."""
    claim = _open_claim(session, claim_id, DISMISSED)
    _decide(session, claim, DISMISSED, actor=actor, comment=comment)


def _open_claim(session: Session, claim_id: int, status: str) -> DriftClaim:
    claim = session.get(DriftClaim, claim_id)
    if claim is None:
        raise ClaimNotFoundError(claim_id)
    if claim.status != OPEN:
        raise WrongStateError(f"Drift claim {claim_id}", claim.status, status, ())
    return claim


def _decide(
    session: Session, claim: DriftClaim, status: str, *, actor: str, comment: str | None
) -> None:
    row = get_drift_claim(session, claim.claim_id)
    claim.status, claim.decided_by, claim.decided_at = status, actor, clock.now()
    claim.decision_comment = comment
    record_audit(
        session,
        actor,
        f"drift.{'accept' if status == ACCEPTED else 'dismiss'}",
        "DRIFT_CLAIM",
        str(claim.claim_id),
        before={"status": OPEN, "kind": claim.kind, "about": [row.dataset, row.subject]},
        after={"status": status},
        reason=comment,
    )


def _concerns(dataset_id: int) -> ColumnElement[bool]:
    other = (DriftClaim.kind == SAME_DATASET) & (DriftClaim.subject_id == dataset_id)
    return (DriftClaim.dataset_id == dataset_id) | other


def _claims() -> Select[*tuple[Any, ...]]:
    other, is_join = aliased(Dataset), DriftClaim.kind == SAME_DATASET
    return (
        select(
            DriftClaim.claim_id,
            DriftClaim.kind,
            DriftClaim.status,
            DriftClaim.dataset_id,
            Dataset.full_name.label("dataset"),
            DriftClaim.subject_id,
            case((is_join, other.full_name), else_=Process.process_key).label("subject"),
            DriftClaim.first_seen,
            DriftClaim.last_seen,
            DriftClaim.detail_json.label("detail"),
            DriftClaim.decided_by,
            DriftClaim.decided_at,
            DriftClaim.decision_comment.label("comment"),
        )
        .join(Dataset, Dataset.dataset_id == DriftClaim.dataset_id)
        .outerjoin(other, is_join & (other.dataset_id == DriftClaim.subject_id))
        .outerjoin(Process, ~is_join & (Process.process_id == DriftClaim.subject_id))
    )
