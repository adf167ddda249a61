"""What may be removed of a dataset, what must stay, and what a state was given for."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Text, select, type_coerce
from sqlalchemy.orm import Session

from floe.catalog.runs import STARTED
from floe.catalog.tables import (
    Dataset,
    DatasetEvent,
    DatasetVersion,
    ProcessRun,
    Project,
    RunInput,
)
from floe.catalog.versions import (
    ABANDONED,
    PUBLISHING,
    READY,
    REJECTED,
    RETRACTED,
    SUPERSEDED,
    VACUUMED,
    WRITING,
)

REMOVABLE = (SUPERSEDED, RETRACTED, REJECTED, ABANDONED)
"""States in which nobody starts to read a version any more."""


class StateEvent(NamedTuple):
    """When a version got its state, from whom, and why."""

    occurred_at: datetime
    actor: str | None
    reason: str | None


def list_removable(session: Session, dataset_id: int) -> Sequence[DatasetVersion]:
    """Return the versions of a dataset that are past their use, the oldest first."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.state.in_(REMOVABLE))
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def newest_good(session: Session, dataset_id: int, count: int) -> set[int]:
    """Return the numbers of the newest versions that passed, whether superseded or not."""
    query = (
        select(DatasetVersion.dataset_version_id)
        .where(
            DatasetVersion.dataset_id == dataset_id,
            DatasetVersion.state.in_((READY, SUPERSEDED)),
        )
        .order_by(DatasetVersion.dataset_version_id.desc())
        .limit(count)
    )
    return set(session.scalars(query))


def list_being_read(session: Session, dataset_id: int) -> dict[str, str]:
    """Return the tags of a dataset that runs read which have not ended, each with such a run."""
    rows: Any = session.execute(
        select(RunInput.version_tag, ProcessRun.run_uuid)
        .join(ProcessRun, ProcessRun.run_id == RunInput.run_id)
        .where(RunInput.dataset_id == dataset_id, ProcessRun.status == STARTED)
    )
    return dict(rows.all())


def list_kept_tags(session: Session, dataset_id: int) -> set[str]:
    """Return the tags of a dataset's versions that were not vacuumed."""
    return set(
        session.scalars(
            select(DatasetVersion.version_tag).where(
                DatasetVersion.dataset_id == dataset_id, DatasetVersion.state != VACUUMED
            )
        )
    )


def is_place_known(session: Session, ending: str) -> bool:
    """Tell whether any version that was not vacuumed lives at a path with this ending."""
    found = select(DatasetVersion.dataset_version_id).where(
        DatasetVersion.path.endswith(ending, autoescape=True), DatasetVersion.state != VACUUMED
    )
    return session.scalar(found.limit(1)) is not None


def list_unfinished_of(session: Session, dataset_id: int) -> Sequence[DatasetVersion]:
    """Return the versions of a dataset that are being written or published."""
    return session.scalars(
        select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset_id,
            DatasetVersion.state.in_((WRITING, PUBLISHING)),
        )
    ).all()


def list_retracted_with(session: Session, project: str, note: str) -> Sequence[DatasetVersion]:
    """Return the retracted versions of a project whose metadata hold a note of this name."""
    noted = type_coerce(DatasetVersion.metadata_json, Text).contains(f'"{note}"', autoescape=True)
    return session.scalars(
        select(DatasetVersion)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .join(Project, Project.project_id == Dataset.project_id)
        .where(Project.name == project, DatasetVersion.state == RETRACTED, noted)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def iter_ready(
    session: Session, dataset_id: int, *, by_date: bool = True
) -> Iterable[DatasetVersion]:
    """Return the READY versions, those of the newest date first, or those made last."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id, DatasetVersion.state == READY
    )
    if by_date:
        query = query.order_by(DatasetVersion.business_date.desc())
    return session.scalars(query.order_by(DatasetVersion.dataset_version_id.desc()))


def ready_of_same_key(session: Session, version: DatasetVersion) -> DatasetVersion | None:
    """Return the READY version of the same date and partition, if there is one."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == version.dataset_id,
        DatasetVersion.business_date == version.business_date,
        DatasetVersion.state == READY,
    )
    key = version.partition_key
    same = DatasetVersion.partition_key
    return session.scalars(query.where(same.is_(None) if key is None else same == key)).first()


def list_ready_after(session: Session, version: DatasetVersion) -> list[str]:
    """Return the tags of the READY versions of a dataset that were made after one."""
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


def describe_states(
    session: Session, versions: Iterable[tuple[int, str]], dataset_id: int
) -> dict[int, StateEvent]:
    """Return who gave versions of a dataset their state and why, by number.

    Only for those that were rejected or retracted; asked in one question.
    """
    wanted = {number: state for number, state in versions if state in (REJECTED, RETRACTED)}
    if not wanted:
        return {}
    events = session.scalars(
        select(DatasetEvent)
        .where(
            DatasetEvent.dataset_id == dataset_id,
            DatasetEvent.dataset_version_id.in_(list(wanted)),
        )
        .order_by(DatasetEvent.dataset_event_id)
    )
    return {
        event.dataset_version_id: StateEvent(
            event.occurred_at, event.actor, (event.detail_json or {}).get("reason")
        )
        for event in events
        if event.dataset_version_id is not None
        and event.event_type == f"VERSION_{wanted[event.dataset_version_id]}"
    }


def describe_state(session: Session, version: DatasetVersion) -> StateEvent | None:
    """Say when and why a version got the state that it has."""
    event = session.scalars(
        select(DatasetEvent)
        .where(
            DatasetEvent.dataset_id == version.dataset_id,
            DatasetEvent.dataset_version_id == version.dataset_version_id,
            DatasetEvent.event_type == f"VERSION_{version.state}",
        )
        .order_by(DatasetEvent.dataset_event_id.desc())
        .limit(1)
    ).first()
    if event is None:
        return None
    return StateEvent(event.occurred_at, event.actor, (event.detail_json or {}).get("reason"))
