"""Find versions: by tag, id, date or state, and who changed their state and why."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct
from sqlalchemy import bindparam, case, or_, select
from sqlalchemy.orm import Session

from floe.catalog.errors import NotFoundError, VersionNotFoundError
from floe.catalog.queries import TypedQuery
from floe.catalog.runs import STARTED
from floe.catalog.tables import Dataset, DatasetEvent, DatasetVersion, ProcessRun, Project, RunInput
from floe.catalog.versions import (
    ABANDONED,
    EXTERNAL,
    PUBLISHING,
    READY,
    REJECTED,
    RETRACTED,
    SUPERSEDED,
    VACUUMED,
    WRITING,
    WRITTEN,
)


class VersionIdNotFoundError(NotFoundError):
    """No version has this id."""

    def __init__(self, dataset_version_id: int) -> None:
        super().__init__(
            f"No version with id {dataset_version_id}. List them with: floe versions DATASET"
        )


def get_version(session: Session, dataset: Dataset, tag: str) -> DatasetVersion:
    """Return the version of a dataset with this tag."""
    version = session.scalar(
        select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset.dataset_id, DatasetVersion.version_tag == tag
        )
    )
    if version is None:
        tags = session.scalars(
            select(DatasetVersion.version_tag).where(
                DatasetVersion.dataset_id == dataset.dataset_id
            )
        )
        raise VersionNotFoundError(dataset.name, tag, known=tags)
    return version


def list_versions(
    session: Session, dataset_id: int, *, before_id: int | None = None, limit: int = 100
) -> Sequence[DatasetVersion]:
    """Return a dataset's versions older than `before_id`, newest first."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    if before_id is not None:
        query = query.where(DatasetVersion.dataset_version_id < before_id)
    newest_first = query.order_by(DatasetVersion.dataset_version_id.desc())
    return session.scalars(newest_first.limit(limit)).all()


def latest_ready(
    session: Session,
    dataset_id: int,
    *,
    on: date | None = None,
    until: date | None = None,
    partition_key: str | None = None,
) -> DatasetVersion | None:
    """Return the newest READY version on a date, or up to a date.

    With a partition key, return that partition's version, or else one without a partition.
    """
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id, DatasetVersion.state == READY
    )
    if on is not None:
        query = query.where(DatasetVersion.business_date == on)
    if until is not None:
        query = query.where(DatasetVersion.business_date <= until)
    newest: list[Any] = [
        DatasetVersion.business_date.desc(),
        DatasetVersion.dataset_version_id.desc(),
    ]
    if partition_key is not None:
        unpartitioned = DatasetVersion.partition_key.is_(None)
        query = query.where(or_(DatasetVersion.partition_key == partition_key, unpartitioned))
        newest.insert(1, case((unpartitioned, 1), else_=0))
    return session.scalars(query.order_by(*newest).limit(1)).first()


def get_version_by_id(session: Session, dataset_version_id: int) -> DatasetVersion:
    """Return the version with this id."""
    version = session.get(DatasetVersion, dataset_version_id)
    if version is None:
        raise VersionIdNotFoundError(dataset_version_id)
    return version


class VersionRow(Struct):
    """A version as a row of a list."""

    dataset_version_id: int
    version_tag: str
    business_date: date | None
    partition_key: str | None
    state: str
    row_count: int | None
    size_bytes: int | None
    schema_hash: str | None
    produced_by_run_id: str | None
    produced_at: datetime
    reason: str | None = None
    """Why it was rejected or retracted."""
    actor: str | None = None
    """Who rejected or retracted it."""


def page_versions(
    session: Session, dataset_id: int, limit: int, *, before_id: int | None = None
) -> list[VersionRow]:
    """Return rows of a dataset's versions older than `before_id`, newest first."""
    after = {} if before_id is None else {"before_id": before_id}
    query = _version_page(limit, started=before_id is not None)
    versions = query.fetch(session, dataset_id=dataset_id, **after)
    states = ((version.dataset_version_id, version.state) for version in versions)
    events = describe_states(session, states, dataset_id)
    for version in versions:
        if event := events.get(version.dataset_version_id):
            version.reason, version.actor = event.reason, event.actor
    return versions


_OF = DatasetVersion.__table__.c


@lru_cache(maxsize=64)
def _version_page(limit: int, *, started: bool) -> TypedQuery[VersionRow]:
    fields = VersionRow.__struct_fields__
    query = select(*(_OF[name] for name in fields[: fields.index("reason")])).where(
        _OF.dataset_id == bindparam("dataset_id", type_=_OF.dataset_id.type)
    )
    if started:
        before = bindparam("before_id", type_=_OF.dataset_version_id.type)
        query = query.where(_OF.dataset_version_id < before)
    return TypedQuery(VersionRow, query.order_by(_OF.dataset_version_id.desc()).limit(limit))


def list_row_counts(session: Session, dataset_id: int, *, until: date, limit: int) -> list[int]:
    """Return the row counts of earlier READY and SUPERSEDED versions, newest first."""
    query = (
        select(DatasetVersion.row_count)
        .where(
            DatasetVersion.dataset_id == dataset_id,
            DatasetVersion.business_date <= until,
            DatasetVersion.state.in_((READY, SUPERSEDED)),
            DatasetVersion.row_count.is_not(None),
        )
        .order_by(DatasetVersion.business_date.desc(), DatasetVersion.dataset_version_id.desc())
        .limit(limit)
    )
    return [count for count in session.scalars(query) if count is not None]


def list_unfinished(session: Session, project: str) -> Sequence[DatasetVersion]:
    """Return the versions of a project's datasets that are being written or published."""
    return session.scalars(
        select(DatasetVersion)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .join(Project, Project.project_id == Dataset.project_id)
        .where(Project.name == project, DatasetVersion.state.in_((WRITING, PUBLISHING)))
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def list_run_versions(session: Session, run_uuid: str) -> Sequence[DatasetVersion]:
    """Return all versions that a run created, in any state."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.produced_by_run_id == run_uuid)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def last_ready(
    session: Session, dataset_id: int, *, until: date, count: int, since: date | None = None
) -> Sequence[DatasetVersion]:
    """Return the newest READY versions up to a date, newest first."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id,
        DatasetVersion.state == READY,
        DatasetVersion.business_date <= until,
    )
    if since is not None:
        query = query.where(DatasetVersion.business_date >= since)
    newest = query.order_by(
        DatasetVersion.business_date.desc(), DatasetVersion.dataset_version_id.desc()
    )
    return session.scalars(newest.limit(count)).all()


def has_later_ready(session: Session, version: DatasetVersion) -> bool:
    """Return whether the dataset has a READY version of a later date."""
    later = select(DatasetVersion.dataset_version_id).where(
        DatasetVersion.dataset_id == version.dataset_id,
        DatasetVersion.state == READY,
        DatasetVersion.business_date > version.business_date,
    )
    return session.scalar(later.limit(1)) is not None


def get_version_of(session: Session, dataset_id: int, tag: str) -> DatasetVersion:
    """Return the version with this tag, by the dataset's id."""
    return get_version(session, session.get_one(Dataset, dataset_id), tag)


def newest_of_date(session: Session, dataset_id: int, business_date: date) -> DatasetVersion | None:
    """Return the newest version of a date, in any state."""
    query = (
        select(DatasetVersion)
        .where(
            DatasetVersion.dataset_id == dataset_id,
            DatasetVersion.business_date == business_date,
            DatasetVersion.state != EXTERNAL,
        )
        .order_by(DatasetVersion.seq.desc())
    )
    return session.scalars(query.limit(1)).first()


def newest_until(
    session: Session, dataset_id: int, until: date, *, since: date | None = None
) -> DatasetVersion | None:
    """Return the newest version of the last date up to `until`, in any state."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id,
        DatasetVersion.business_date <= until,
        DatasetVersion.state != EXTERNAL,
    )
    if since is not None:
        query = query.where(DatasetVersion.business_date >= since)
    newest = query.order_by(DatasetVersion.business_date.desc(), DatasetVersion.seq.desc())
    return session.scalars(newest.limit(1)).first()


def list_unvalidated(session: Session, project: str) -> Sequence[DatasetVersion]:
    """Return the versions of a project that other systems wrote, not validated yet."""
    return session.scalars(
        select(DatasetVersion)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .join(Project, Project.project_id == Dataset.project_id)
        .where(Project.name == project, DatasetVersion.state == WRITTEN)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


REMOVABLE = (SUPERSEDED, RETRACTED, REJECTED, ABANDONED)
"""States in which no new run reads a version."""


class StateEvent(NamedTuple):
    """When a version got its state, who set it, and why."""

    occurred_at: datetime
    actor: str | None
    reason: str | None


def list_removable(session: Session, dataset_id: int) -> Sequence[DatasetVersion]:
    """Return the versions of a dataset that vacuum may remove, oldest first."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.dataset_id == dataset_id, DatasetVersion.state.in_(REMOVABLE))
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def newest_published_ids(session: Session, dataset_id: int, count: int) -> set[int]:
    """Return the ids of the newest READY or SUPERSEDED versions."""
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


def list_tags_in_use(session: Session, dataset_id: int) -> dict[str, str]:
    """Return the tags that unfinished runs read, each with the id of one such run."""
    rows: Any = session.execute(
        select(RunInput.version_tag, ProcessRun.run_uuid)
        .join(ProcessRun, ProcessRun.run_id == RunInput.run_id)
        .where(RunInput.dataset_id == dataset_id, ProcessRun.status == STARTED)
    )
    return dict(rows.all())


def list_kept_tags(session: Session, dataset_id: int) -> set[str]:
    """Return the tags of a dataset's versions that are not vacuumed."""
    return set(
        session.scalars(
            select(DatasetVersion.version_tag).where(
                DatasetVersion.dataset_id == dataset_id, DatasetVersion.state != VACUUMED
            )
        )
    )


def is_path_known(session: Session, ending: str) -> bool:
    """Return whether the path of a version that is not vacuumed ends with this text."""
    known = select(DatasetVersion.dataset_version_id).where(
        DatasetVersion.path.endswith(ending, autoescape=True), DatasetVersion.state != VACUUMED
    )
    return session.scalar(known.limit(1)) is not None


def list_unfinished_of(session: Session, dataset_id: int) -> Sequence[DatasetVersion]:
    """Return the versions of a dataset that are being written or published."""
    return session.scalars(
        select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset_id,
            DatasetVersion.state.in_((WRITING, PUBLISHING)),
        )
    ).all()


def describe_states(
    session: Session, versions: Iterable[tuple[int, str]], dataset_id: int
) -> dict[int, StateEvent]:
    """Return who rejected or retracted versions and why, by version id.

    Other versions are left out. Runs one query.
    """
    wanted = {version_id: state for version_id, state in versions if state in (REJECTED, RETRACTED)}
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
    """Return when and why a version got its current state, or None."""
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
