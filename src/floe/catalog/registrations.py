"""Registrations: requests to register a dataset, which a steward approves or rejects."""

from collections.abc import Sequence
from typing import Any, Unpack

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DRAFT,
    DatasetFields,
    create_dataset,
    set_status,
)
from floe.catalog.errors import RegistrationNotFoundError, WrongStateError
from floe.catalog.tables import Dataset, DatasetRegistration

PENDING, APPROVED, REJECTED = "PENDING", "APPROVED", "REJECTED"


def submit_registration(
    session: Session,
    namespace: str,
    name: str,
    *,
    submitted_by: str,
    request: Any = None,
    **values: Unpack[DatasetFields],
) -> DatasetRegistration:
    """Ask for a dataset: it is there as a draft until a steward decides."""
    dataset = create_dataset(session, namespace, name, status=DRAFT, actor=submitted_by, **values)
    registration = DatasetRegistration(
        dataset_id=dataset.dataset_id,
        submitted_by=submitted_by,
        submitted_at=clock.now(),
        status=PENDING,
        request_json=request,
    )
    session.add(registration)
    session.flush()
    return registration


def approve_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Approve a request: the dataset becomes active."""
    registration = _pending(session, reg_id, APPROVED)
    return _decide(session, registration, APPROVED, reviewer=reviewer, comment=comment)


def reject_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Reject a request: the draft is deprecated and stays as a record."""
    registration = _pending(session, reg_id, REJECTED)
    return _decide(session, registration, REJECTED, reviewer=reviewer, comment=comment)


def _pending(session: Session, reg_id: int, verdict: str) -> DatasetRegistration:
    registration = session.get(DatasetRegistration, reg_id, with_for_update=True)
    if registration is None:
        raise RegistrationNotFoundError(reg_id)
    if registration.status != PENDING:
        raise WrongStateError(f"Registration {reg_id}", registration.status, verdict, ())
    return registration


def _decide(
    session: Session,
    registration: DatasetRegistration,
    verdict: str,
    *,
    reviewer: str,
    comment: str | None,
) -> DatasetRegistration:
    registration.status, registration.reviewer = verdict, reviewer
    registration.reviewed_at, registration.review_comment = clock.now(), comment
    dataset = session.get_one(Dataset, registration.dataset_id)
    status = ACTIVE if verdict == APPROVED else DEPRECATED
    set_status(session, dataset, status, actor=reviewer)
    return registration


def list_registrations(
    session: Session, *, status: str | None = PENDING, limit: int = 100
) -> Sequence[DatasetRegistration]:
    """Return requests, the oldest first; with no status, all of them."""
    query = select(DatasetRegistration)
    if status is not None:
        query = query.where(DatasetRegistration.status == status)
    return session.scalars(query.order_by(DatasetRegistration.reg_id).limit(limit)).all()


def get_registration(session: Session, reg_id: int) -> DatasetRegistration:
    """Return the request with this number."""
    registration = session.get(DatasetRegistration, reg_id)
    if registration is None:
        raise RegistrationNotFoundError(reg_id)
    return registration


def page_registrations(
    session: Session, *, status: str | None = None, after_id: int = 0, limit: int = 100
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return requests with the names of their datasets, the oldest first, from after one on."""
    of = DatasetRegistration.__table__.c
    query = (
        select(*of, Dataset.full_name)
        .join(Dataset, Dataset.dataset_id == of.dataset_id)
        .where(of.reg_id > after_id)
    )
    if status is not None:
        query = query.where(of.status == status)
    return session.execute(query.order_by(of.reg_id).limit(limit)).all()
