"""Drift claims: what events claim against what is declared, for a steward to decide on."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, case, select
from sqlalchemy.orm import Session, aliased

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.errors import NotFoundError, WrongStateError
from floe.catalog.joining import SAME_DATASET, join_datasets, rank
from floe.catalog.tables import Dataset, DriftClaim, Process
from floe.errors import FloeError

# A job outside of floe announced a version of a dataset that floe writes itself.
FOREIGN_VERSION = "FOREIGN_VERSION"
OPEN, ACCEPTED, DISMISSED = "OPEN", "ACCEPTED", "DISMISSED"


class ClaimNotFoundError(NotFoundError):
    """No drift claim has this number."""

    def __init__(self, claim_id: int) -> None:
        super().__init__(f"No drift claim has the number {claim_id}. List them with: floe drift")


class NotAcceptableError(WrongStateError):
    """A drift claim cannot be accepted, only dismissed."""

    def __init__(self, claim_id: int) -> None:
        FloeError.__init__(
            self,
            f"Claim {claim_id} is a version that another job announced for a dataset that floe "
            "writes. It cannot be accepted: stop that job or let it write another dataset, then "
            "dismiss the claim.",
        )


@dataclass(frozen=True)
class ClaimRow:
    """A claim with the names of what it is about."""

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
    """Return claims in the order of their numbers; None for those of any status."""
    query = _claims().where(DriftClaim.claim_id > after).limit(limit)
    if status is not None:
        query = query.where(DriftClaim.status == status)
    if dataset_id is not None:
        query = query.where(_concerns(dataset_id))
    rows: Any = session.execute(query.order_by(DriftClaim.claim_id))
    return [ClaimRow(*row) for row in rows]


def get_drift_claim(session: Session, claim_id: int) -> ClaimRow:
    """Return the claim with this number, whatever was decided on it."""
    row: Any = session.execute(_claims().where(DriftClaim.claim_id == claim_id)).one_or_none()
    if row is None:
        raise ClaimNotFoundError(claim_id)
    return ClaimRow(*row)


def accept_claim(session: Session, claim_id: int, *, actor: str, comment: str | None = None) -> str:
    """Join the two datasets of a claim; return the name of the one that stays.

    That is the declared one, else the one that floe writes, else the curated, else the older one.
    """
    claim = _open_claim(session, claim_id, ACCEPTED)
    if claim.kind != SAME_DATASET:
        raise NotAcceptableError(claim_id)
    pair = [get_dataset(session, number) for number in (claim.dataset_id, claim.subject_id)]
    kept, gone = sorted(pair, key=rank)
    _decide(session, claim, ACCEPTED, actor=actor, comment=comment)
    # The claim goes with the join, which is in the audit log and has a record of its own.
    session.delete(claim)
    session.flush()
    reason = comment or f"accepted drift claim {claim_id}"
    return join_datasets(session, kept, gone, actor=actor, reason=reason).full_name


def dismiss_claim(
    session: Session, claim_id: int, *, actor: str, comment: str | None = None
) -> None:
    """Note that a claim is wrong. It stays dismissed, however often it comes again."""
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
    shown = get_drift_claim(session, claim.claim_id)
    claim.status, claim.decided_by, claim.decided_at = status, actor, clock.now()
    claim.decision_comment = comment
    record_audit(
        session,
        actor,
        f"drift.{'accept' if status == ACCEPTED else 'dismiss'}",
        "DRIFT_CLAIM",
        str(claim.claim_id),
        before={"status": OPEN, "kind": claim.kind, "about": [shown.dataset, shown.subject]},
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
            Dataset.full_name,
            DriftClaim.subject_id,
            case((is_join, other.full_name), else_=Process.process_key),
            DriftClaim.first_seen,
            DriftClaim.last_seen,
            DriftClaim.detail_json,
            DriftClaim.decided_by,
            DriftClaim.decided_at,
            DriftClaim.decision_comment,
        )
        .join(Dataset, Dataset.dataset_id == DriftClaim.dataset_id)
        .outerjoin(other, is_join & (other.dataset_id == DriftClaim.subject_id))
        .outerjoin(Process, ~is_join & (Process.process_id == DriftClaim.subject_id))
    )
