"""Stable names: which version of a dataset its stable name shows.

The format stores its details in a version's metadata. If a version is retracted while the stable
name shows it, the version is marked in the same transaction, and a process that can access the
data later updates the stable name.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Text, select, type_coerce
from sqlalchemy.orm import Session

from floe.catalog.tables import Dataset, DatasetVersion, Project
from floe.catalog.versions import (
    READY,
    RETRACTED,
    retract_version,
)

OWN = "floe"
"""The key in a version's metadata for the details of floe's formats."""

PENDING = "pending_show"
"""The mark of a retracted version that the stable name may still show."""


def details_of(version: DatasetVersion) -> Mapping[str, Any]:
    """Return the details that the format stored for a version."""
    own = (version.metadata_json or {}).get(OWN)
    return own if isinstance(own, dict) else {}


def with_details(version: DatasetVersion, details: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version's metadata with the format's details replaced."""
    return {**(version.metadata_json or {}), OWN: dict(details)}


def is_made_here(version: DatasetVersion) -> bool:
    """Return whether one of floe's formats stored the version."""
    return OWN in (version.metadata_json or {})


def is_pending(version: DatasetVersion) -> bool:
    """Return whether the stable name may still show a retracted version."""
    return PENDING in details_of(version)


def retract_and_mark(
    session: Session, version: DatasetVersion, *, reason: str, actor: str | None = None
) -> DatasetVersion | None:
    """Retract a version; mark it if the stable name shows it.

    Returns the previous version, if it is READY again.
    """
    shown = is_shown(session, version)
    previous = retract_version(session, version, reason=reason, actor=actor)
    if shown:
        version.metadata_json = with_details(version, {**details_of(version), PENDING: True})
    return previous


def is_shown(session: Session, version: DatasetVersion) -> bool:
    """Return whether the stable name shows a version or its partition."""
    if version.state != READY or not _has_name(version):
        return False
    shown = find_shown(session, version)
    return shown is not None and shown.dataset_version_id == version.dataset_version_id


def find_shown(session: Session, version: DatasetVersion) -> DatasetVersion | None:
    """Return the version that the stable name must show.

    If the given version is of one partition, return the one to show in that partition.
    """
    details = details_of(version)
    if not is_whole(version):
        return ready_of_same_key(session, version)
    # In mode replace the newest date is shown, else the version created last.
    by_date = details.get("mode", "replace") == "replace"
    ready = iter_ready(session, version.dataset_id, by_date=by_date)
    return next((candidate for candidate in ready if _has_name(candidate)), None)


def is_whole(version: DatasetVersion) -> bool:
    """Return whether a version contains the whole dataset, not a partition."""
    details = details_of(version)
    return bool(details.get("whole", details.get("mode") != "overwrite_partition"))


def _has_name(version: DatasetVersion) -> bool:
    # Deliveries and extracts have no stable name.
    details = details_of(version)
    unnamed = details.get("delivered") or details.get("extract")
    return is_made_here(version) and not unnamed


def list_retracted_with(session: Session, project: str, mark: str) -> Sequence[DatasetVersion]:
    """Return the retracted versions of a project whose metadata have this mark."""
    marked = type_coerce(DatasetVersion.metadata_json, Text).contains(f'"{mark}"', autoescape=True)
    return session.scalars(
        select(DatasetVersion)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .join(Project, Project.project_id == Dataset.project_id)
        .where(Project.name == project, DatasetVersion.state == RETRACTED, marked)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def iter_ready(
    session: Session, dataset_id: int, *, by_date: bool = True
) -> Iterable[DatasetVersion]:
    """Return the READY versions, newest date first, or newest id first."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id, DatasetVersion.state == READY
    )
    if by_date:
        query = query.order_by(DatasetVersion.business_date.desc())
    return session.scalars(query.order_by(DatasetVersion.dataset_version_id.desc()))


def ready_of_same_key(session: Session, version: DatasetVersion) -> DatasetVersion | None:
    """Return the READY version of the same date and partition, or None."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == version.dataset_id,
        DatasetVersion.business_date == version.business_date,
        DatasetVersion.state == READY,
    )
    key = version.partition_key
    same = DatasetVersion.partition_key
    return session.scalars(query.where(same.is_(None) if key is None else same == key)).first()


def list_ready_after(session: Session, version: DatasetVersion) -> list[str]:
    """Return the tags of the READY versions that were created after a version."""
    return list(
        session.scalars(
            select(DatasetVersion.version_tag)
            .where(
                DatasetVersion.dataset_id == version.dataset_id,
                DatasetVersion.dataset_version_id > version.dataset_version_id,
                DatasetVersion.state == READY,
            )
            .order_by(DatasetVersion.dataset_version_id)
        )
    )
