"""Registrations: requests to register a dataset, which a steward approves or rejects."""

from collections.abc import Sequence
from typing import Any, Unpack, cast

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import (
    ACTIVE,
    DEPRECATED,
    DRAFT,
    DatasetFields,
    create_dataset,
    set_status,
    update_dataset,
)
from floe.catalog.errors import (
    DatasetExistsError,
    RegistrationNotFoundError,
    RegistrationPendingError,
    WrongStateError,
)
from floe.catalog.rows import given
from floe.catalog.tables import Dataset, DatasetRegistration
from floe.spec.identity import DatasetId

PENDING, APPROVED, REJECTED = "PENDING", "APPROVED", "REJECTED"
# What a request can say of a dataset besides its name.
ASKED = ("description", "category", "default_format", "owner_team", "owner_email")


def submit_registration(
    session: Session,
    namespace: str,
    name: str,
    *,
    submitted_by: str,
    request: Any = None,
    **values: Unpack[DatasetFields],
) -> DatasetRegistration:
    """Ask for a dataset: it is there as a draft until a steward decides.

    One that is only known from events stays as it is until then.
    """
    dataset = _askable(session, DatasetId(namespace, name).full_name)
    if dataset is None:
        fields: DatasetFields = {**values, "curated": True}
        dataset = create_dataset(
            session, namespace, name, status=DRAFT, actor=submitted_by, **fields
        )
    elif dataset.curated:
        _change(session, dataset, DRAFT, actor=submitted_by, **values)
    registration = DatasetRegistration(
        dataset_id=dataset.dataset_id,
        submitted_by=submitted_by,
        submitted_at=clock.now(),
        status=PENDING,
        request_json=dict(values) if request is None else request,
    )
    session.add(registration)
    session.flush()
    return registration


def _askable(session: Session, full_name: str) -> Dataset | None:
    """Return the dataset of this name, if there is one, or raise an error when it is taken."""
    dataset = session.scalar(
        select(Dataset).where(Dataset.full_name == full_name).with_for_update()
    )
    if dataset is None:
        return None
    last = session.scalar(
        select(DatasetRegistration.status)
        .where(DatasetRegistration.dataset_id == dataset.dataset_id)
        .order_by(DatasetRegistration.reg_id.desc())
        .limit(1)
    )
    if last == PENDING:
        raise RegistrationPendingError(full_name)
    refused = last == REJECTED and dataset.status == DEPRECATED
    if dataset.project_id is not None or (dataset.curated and not refused):
        raise DatasetExistsError(full_name)
    return dataset


def approve_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Approve a request: the dataset becomes active, and what was asked for holds."""
    registration = _decide(session, reg_id, APPROVED, reviewer=reviewer, comment=comment)
    dataset = session.get_one(Dataset, registration.dataset_id)
    values: DatasetFields = {}
    # What a project has declared meanwhile stands. A draft has had its values from the start, and
    # may have better ones by now.
    if dataset.project_id is None and not _is_draft(dataset):
        values = _asked(registration)
    _change(session, dataset, ACTIVE, actor=reviewer, **values)
    return registration


def reject_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Reject a request: its draft is deprecated and stays as a record; what was there before stays.

    So a dataset that is known from events goes on as if nobody had asked.
    """
    registration = _decide(session, reg_id, REJECTED, reviewer=reviewer, comment=comment)
    dataset = session.get_one(Dataset, registration.dataset_id)
    if _is_draft(dataset):
        _change(session, dataset, DEPRECATED, actor=reviewer)
    return registration


def _is_draft(dataset: Dataset) -> bool:
    """Say whether a dataset is there only because somebody asked for it."""
    return dataset.curated and dataset.status == DRAFT


def _asked(registration: DatasetRegistration) -> DatasetFields:
    """The values that a request gives, which from now on stand above what events say."""
    request = given(registration.request_json or {})
    values = {name: request[name] for name in ASKED if name in request}
    return cast("DatasetFields", {**values, "curated": True})


def _change(
    session: Session, dataset: Dataset, status: str, *, actor: str, **values: Unpack[DatasetFields]
) -> None:
    """Change a dataset by a request or by what was decided about it, and tell the audit log."""
    change = update_dataset(session, dataset, actor=actor, **values)
    before = dataset.status
    if set_status(session, dataset, status, actor=actor):
        change.add("status", before, status)
    if change:
        record_audit(
            session,
            actor,
            "dataset.update",
            "DATASET",
            dataset.full_name,
            before=change.before,
            after=change.after,
        )


def _decide(
    session: Session, reg_id: int, verdict: str, *, reviewer: str, comment: str | None
) -> DatasetRegistration:
    registration = session.get(DatasetRegistration, reg_id, with_for_update=True)
    if registration is None:
        raise RegistrationNotFoundError(reg_id)
    if registration.status != PENDING:
        raise WrongStateError(f"Registration {reg_id}", registration.status, verdict, ())
    registration.status, registration.reviewer = verdict, reviewer
    registration.reviewed_at, registration.review_comment = clock.now(), comment
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
