"""Versions that are no good though others can read them already, as dbt makes them."""

from datetime import date
from typing import Unpack

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.changes import NewChange, record_change
from floe.catalog.datasets import record_dataset_event
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import EXTERNAL, READY, REJECTED, VersionFacts, advance_version


def record_rejected(
    session: Session,
    dataset_id: int,
    business_date: date,
    tag: str,
    *,
    reason: str,
    actor: str | None = None,
    **facts: Unpack[VersionFacts],
) -> None:
    """Note a version that others made and that is no good. It was never READY here.

    Somebody may have read it already, so that it is known by its tag. Twice changes nothing.
    """
    version = _find_tag(session, dataset_id, tag)
    if version is not None and version.state != EXTERNAL:
        return
    if version is None:
        version = DatasetVersion(
            dataset_id=dataset_id,
            version_tag=tag,
            seq=_next_number(session, dataset_id, business_date),
            legal_hold=False,
        )
        session.add(version)
    version.business_date, version.state, version.produced_at = business_date, REJECTED, clock.now()
    for name, value in facts.items():
        setattr(version, name, value)
    session.flush()
    record_dataset_event(
        session,
        dataset_id,
        f"VERSION_{REJECTED}",
        actor,
        {"tag": tag, "reason": reason},
        dataset_version_id=version.dataset_version_id,
    )
    record_change(
        session,
        NewChange(
            kind=f"VERSION_{REJECTED}",
            dataset_id=dataset_id,
            dataset_version_id=version.dataset_version_id,
            business_date=business_date,
        ),
    )


def reject_ready(
    session: Session, dataset_id: int, tag: str, *, reason: str, actor: str | None = None
) -> None:
    """Reject a version that is READY; one that is not READY any more stays as it is."""
    version = _find_tag(session, dataset_id, tag)
    if version is not None and version.state == READY:
        advance_version(session, version, REJECTED, actor=actor, reason=reason)


def _find_tag(session: Session, dataset_id: int, tag: str) -> DatasetVersion | None:
    return session.scalar(
        select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset_id, DatasetVersion.version_tag == tag
        )
    )


def _next_number(session: Session, dataset_id: int, business_date: date) -> int:
    last = session.scalar(
        select(func.max(DatasetVersion.seq)).where(
            DatasetVersion.dataset_id == dataset_id, DatasetVersion.business_date == business_date
        )
    )
    return (last or 0) + 1
