"""Registrations: requests for a dataset that a steward approves or rejects."""

from collections.abc import Sequence
from typing import Any, Unpack, cast

from sqlalchemy import Row, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audit, without_none
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
from floe.catalog.tables import Dataset, DatasetRegistration
from floe.spec.identity import DatasetId

PENDING, APPROVED, REJECTED = "PENDING", "APPROVED", "REJECTED"
# The fields that a request can set besides the name.
REQUEST_FIELDS = ("description", "category", "default_format", "owner_team", "owner_email")


def submit_registration(
    session: Session,
    namespace: str,
    name: str,
    *,
    submitted_by: str,
    request: Any = None,
    **values: Unpack[DatasetFields],
) -> DatasetRegistration:
    """Request a dataset. It is a draft until a steward decides.

    A dataset that is known only from events does not change until then.
    """
    dataset = _find_requestable(session, DatasetId(namespace, name).full_name)
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


def _find_requestable(session: Session, full_name: str) -> Dataset | None:
    """Return the dataset of this name or None; raise an error if it is taken."""
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
    rejected = last == REJECTED and dataset.status == DEPRECATED
    if dataset.project_id is not None or (dataset.curated and not rejected):
        raise DatasetExistsError(full_name)
    return dataset


def approve_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Approve a request: the dataset becomes ACTIVE with the requested fields."""
    registration = _decide(session, reg_id, APPROVED, reviewer=reviewer, comment=comment)
    dataset = session.get_one(Dataset, registration.dataset_id)
    values: DatasetFields = {}
    # Do not overwrite what a project declared since. A draft got the requested values at the
    # start, and they may have been corrected since.
    if dataset.project_id is None and not _is_draft(dataset):
        values = _requested_fields(registration)
    _change(session, dataset, ACTIVE, actor=reviewer, **values)
    return registration


def reject_registration(
    session: Session, reg_id: int, *, reviewer: str, comment: str | None = None
) -> DatasetRegistration:
    """Reject a request: its draft becomes DEPRECATED.

    A dataset that was already known from events does not change.
    """
    registration = _decide(session, reg_id, REJECTED, reviewer=reviewer, comment=comment)
    dataset = session.get_one(Dataset, registration.dataset_id)
    if _is_draft(dataset):
        _change(session, dataset, DEPRECATED, actor=reviewer)
    return registration


def _is_draft(dataset: Dataset) -> bool:
    """Return whether a dataset exists only because it was requested."""
    return dataset.curated and dataset.status == DRAFT


def _requested_fields(registration: DatasetRegistration) -> DatasetFields:
    """Return the requested fields, marked as curated: events do not overwrite them."""
    request = without_none(registration.request_json or {})
    values = {name: request[name] for name in REQUEST_FIELDS if name in request}
    return cast("DatasetFields", {**values, "curated": True})


def _change(
    session: Session, dataset: Dataset, status: str, *, actor: str, **values: Unpack[DatasetFields]
) -> None:
    """Update a dataset and its status, and record that in the audit log."""
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


def get_registration(session: Session, reg_id: int) -> DatasetRegistration:
    """Return the request with this id."""
    registration = session.get(DatasetRegistration, reg_id)
    if registration is None:
        raise RegistrationNotFoundError(reg_id)
    return registration


def page_registrations(
    session: Session, *, status: str | None = None, after_id: int = 0, limit: int = 100
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return requests with ids after `after_id` and their dataset names, oldest first."""
    of = DatasetRegistration.__table__.c
    query = (
        select(*of, Dataset.full_name)
        .join(Dataset, Dataset.dataset_id == of.dataset_id)
        .where(of.reg_id > after_id)
    )
    if status is not None:
        query = query.where(of.status == status)
    return session.execute(query.order_by(of.reg_id).limit(limit)).all()
