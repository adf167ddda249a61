"""Versions: immutable states of a dataset, from reserved tag to READY and beyond."""

from collections.abc import Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import bindparam, case, func, or_, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.changes import NewChange, record_change
from floe.catalog.datasets import record_dataset_event
from floe.catalog.errors import NotFoundError, VersionNotFoundError, WrongStateError
from floe.catalog.questions import Question
from floe.catalog.tables import Dataset, DatasetVersion, Project
from floe.spec.identity import version_tag

WRITING, PUBLISHING, WRITTEN = "WRITING", "PUBLISHING", "WRITTEN"
READY, REJECTED, ABANDONED = "READY", "REJECTED", "ABANDONED"
SUPERSEDED, RETRACTED, VACUUMED, EXTERNAL = "SUPERSEDED", "RETRACTED", "VACUUMED", "EXTERNAL"

# Own versions are WRITING then PUBLISHING; a foreign one that must be validated starts WRITTEN.
# EXTERNAL is known from others only: somebody read it and nobody announced it, or it was announced
# under a name that was joined to a dataset which floe writes itself.
NEXT_STATES: dict[str, frozenset[str]] = {
    WRITING: frozenset({PUBLISHING, REJECTED, ABANDONED}),
    PUBLISHING: frozenset({READY, REJECTED, ABANDONED}),
    WRITTEN: frozenset({READY, REJECTED, ABANDONED}),
    EXTERNAL: frozenset({WRITTEN, READY}),
    # What dbt makes can be read before it is tested, and a test can be run again later.
    READY: frozenset({SUPERSEDED, REJECTED, RETRACTED, VACUUMED}),
    SUPERSEDED: frozenset({READY, RETRACTED, VACUUMED}),
    RETRACTED: frozenset({VACUUMED}),
    REJECTED: frozenset({VACUUMED}),
    ABANDONED: frozenset({VACUUMED}),
    VACUUMED: frozenset(),
}
FIRST_STATES = frozenset({WRITING, WRITTEN, READY, EXTERNAL})


class VersionNumberNotFoundError(NotFoundError):
    """A version was asked for by a number that none has."""

    def __init__(self, dataset_version_id: int) -> None:
        super().__init__(f"No version has the number {dataset_version_id}.")


class VersionFacts(TypedDict, total=False):
    """What is known of a version besides its name and state."""

    path: str | None
    row_count: int | None
    size_bytes: int | None
    checksum: str | None
    schema_hash: str | None
    produced_by_run_id: str | None
    metadata_json: Any


def reserve_version(
    session: Session,
    dataset_id: int,
    business_date: date,
    *,
    partition_key: str | None = None,
    state: str = WRITING,
    actor: str | None = None,
    own: bool = False,
    **facts: Unpack[VersionFacts],
) -> DatasetVersion:
    """Take the next tag of a business date or partition and open a version under it.

    `own` says that floe writes the version itself, and so from now on those of the dataset.
    """
    if state not in FIRST_STATES:
        raise WrongStateError("A new version", "not there yet", state, FIRST_STATES)
    dataset = _lock_dataset(session, dataset_id)
    if own:
        dataset.floe_writes = True
    key = partition_key or business_date.isoformat()
    seq = _next_seq(session, dataset_id, business_date, partition_key)
    version = DatasetVersion(
        dataset_id=dataset_id,
        version_tag=version_tag(key, seq),
        business_date=business_date,
        partition_key=partition_key,
        seq=seq,
        state=state,
        produced_at=clock.now(),
        legal_hold=False,
        **facts,
    )
    session.add(version)
    session.flush()
    _note(session, version, actor, {})
    return version


def _lock_dataset(session: Session, dataset_id: int) -> Dataset:
    # Two writers of one dataset must not take the same number.
    return session.scalars(
        select(Dataset).where(Dataset.dataset_id == dataset_id).with_for_update()
    ).one()


def _next_seq(
    session: Session, dataset_id: int, business_date: date, partition_key: str | None
) -> int:
    query = select(func.max(DatasetVersion.seq)).where(
        DatasetVersion.dataset_id == dataset_id, DatasetVersion.business_date == business_date
    )
    query = query.where(
        DatasetVersion.partition_key.is_(None)
        if partition_key is None
        else DatasetVersion.partition_key == partition_key
    )
    seq = (session.scalar(query) or 0) + 1
    # Somebody may have announced or read a version under a tag that looks like one of floe's.
    key = partition_key or business_date
    taken = set(
        session.scalars(
            select(DatasetVersion.version_tag).where(
                DatasetVersion.dataset_id == dataset_id,
                DatasetVersion.version_tag.startswith(f"{key}.", autoescape=True),
            )
        )
    )
    while version_tag(key, seq) in taken:
        seq += 1
    return seq


def advance_version(
    session: Session,
    version: DatasetVersion,
    state: str,
    *,
    actor: str | None = None,
    reason: str | None = None,
    **facts: Unpack[VersionFacts],
) -> None:
    """Move a version to its next state, with what became known of it on the way."""
    if state not in NEXT_STATES[version.state]:
        what = f"Version '{version.version_tag}'"
        raise WrongStateError(what, version.state, state, NEXT_STATES[version.state])
    before, version.state = version.state, state
    for name, value in facts.items():
        setattr(version, name, value)
    _note(session, version, actor, {"from": before, "reason": reason})


def _note(session: Session, version: DatasetVersion, actor: str | None, detail: Any) -> None:
    """Write the event of a new state; READY and its end are changes that others wait for."""
    if version.state == READY:
        _supersede_older(session, version, actor)
    record_dataset_event(
        session,
        version.dataset_id,
        f"VERSION_{version.state}",
        actor,
        {"tag": version.version_tag, **{k: v for k, v in detail.items() if v is not None}},
        dataset_version_id=version.dataset_version_id,
    )
    if version.state in (READY, REJECTED, RETRACTED):
        record_change(
            session,
            NewChange(
                kind=f"VERSION_{version.state}",
                dataset_id=version.dataset_id,
                dataset_version_id=version.dataset_version_id,
                business_date=version.business_date,
                partition_key=version.partition_key,
            ),
        )


def _supersede_older(session: Session, version: DatasetVersion, actor: str | None) -> None:
    older = session.scalars(
        _of_same_key(version).where(
            DatasetVersion.state == READY,
            DatasetVersion.dataset_version_id != version.dataset_version_id,
        )
    )
    for other in older:
        advance_version(session, other, SUPERSEDED, actor=actor)


def retract_version(
    session: Session, version: DatasetVersion, *, reason: str, actor: str | None = None
) -> DatasetVersion | None:
    """Take a version back; return the one that is READY again in its place, if any.

    Of one that a stable name may show, `shown.take_back` leaves a note as well.
    """
    was_ready = version.state == READY
    advance_version(session, version, RETRACTED, actor=actor, reason=reason)
    if not was_ready:
        return None
    previous = session.scalars(
        _of_same_key(version)
        .where(DatasetVersion.state == SUPERSEDED)
        .order_by(DatasetVersion.seq.desc())
        .limit(1)
    ).first()
    if previous is not None:
        advance_version(session, previous, READY, actor=actor, reason="successor retracted")
    return previous


def _of_same_key(version: DatasetVersion) -> Any:
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == version.dataset_id,
        DatasetVersion.business_date == version.business_date,
    )
    if version.partition_key is None:
        return query.where(DatasetVersion.partition_key.is_(None))
    return query.where(DatasetVersion.partition_key == version.partition_key)


def hold_version(
    session: Session, version: DatasetVersion, *, held: bool, actor: str | None = None
) -> None:
    """Set or lift a legal hold: what is held is never vacuumed."""
    version.legal_hold = held
    record_dataset_event(
        session,
        version.dataset_id,
        "LEGAL_HOLD_SET" if held else "LEGAL_HOLD_LIFTED",
        actor,
        {"tag": version.version_tag},
        dataset_version_id=version.dataset_version_id,
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
    """Return a dataset's versions, the newest first, from before one on."""
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
    """Return the READY version of a date, or the newest one of a date no later than `until`.

    With a partition key it is that of the partition, else one that is of no partition.
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
        of_none = DatasetVersion.partition_key.is_(None)
        query = query.where(or_(DatasetVersion.partition_key == partition_key, of_none))
        newest.insert(1, case((of_none, 1), else_=0))
    return session.scalars(query.order_by(*newest).limit(1)).first()


def get_version_by_id(session: Session, dataset_version_id: int) -> DatasetVersion:
    """Return the version with this number."""
    version = session.get(DatasetVersion, dataset_version_id)
    if version is None:
        raise VersionNumberNotFoundError(dataset_version_id)
    return version


class VersionRow(NamedTuple):
    """A version, as a list shows it."""

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


def page_versions(
    session: Session, dataset_id: int, limit: int, *, before_id: int | None = None
) -> list[VersionRow]:
    """Return a dataset's versions, the newest first, from before one on."""
    if before_id is None:
        return _version_page(limit, started=False).ask(session, dataset_id=dataset_id)
    question = _version_page(limit, started=True)
    return question.ask(session, dataset_id=dataset_id, before_id=before_id)


_OF = DatasetVersion.__table__.c


@lru_cache(maxsize=64)
def _version_page(limit: int, *, started: bool) -> Question[VersionRow]:
    query = select(*(_OF[name] for name in VersionRow._fields)).where(
        _OF.dataset_id == bindparam("dataset_id", type_=_OF.dataset_id.type)
    )
    if started:
        before = bindparam("before_id", type_=_OF.dataset_version_id.type)
        query = query.where(_OF.dataset_version_id < before)
    return Question(VersionRow, query.order_by(_OF.dataset_version_id.desc()).limit(limit))


def list_row_counts(session: Session, dataset_id: int, *, until: date, limit: int) -> list[int]:
    """Return how many rows the versions before had that were good, the newest first."""
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


def list_of_run(session: Session, run_uuid: str) -> Sequence[DatasetVersion]:
    """Return the versions that a run made, whatever became of them."""
    return session.scalars(
        select(DatasetVersion)
        .where(DatasetVersion.produced_by_run_id == run_uuid)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()


def last_ready(
    session: Session, dataset_id: int, *, until: date, count: int, since: date | None = None
) -> Sequence[DatasetVersion]:
    """Return the READY versions of the last dates, the newest first."""
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
    """Tell whether a version of a later date is READY."""
    later = select(DatasetVersion.dataset_version_id).where(
        DatasetVersion.dataset_id == version.dataset_id,
        DatasetVersion.state == READY,
        DatasetVersion.business_date > version.business_date,
    )
    return session.scalar(later.limit(1)) is not None


def get_version_of(session: Session, dataset_id: int, tag: str) -> DatasetVersion:
    """Return the version of a dataset with this tag, the dataset by its number."""
    return get_version(session, session.get_one(Dataset, dataset_id), tag)


def peek_tag(
    session: Session, dataset_id: int, business_date: date, partition_key: str | None = None
) -> str:
    """Return the tag that the next version of a date or partition would get."""
    seq = _next_seq(session, dataset_id, business_date, partition_key)
    return version_tag(partition_key or business_date.isoformat(), seq)


def newest_of_date(session: Session, dataset_id: int, business_date: date) -> DatasetVersion | None:
    """Return the version of a date that was made last, whatever became of it."""
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
    """Return the newest version of the last date up to one, whatever its state."""
    query = select(DatasetVersion).where(
        DatasetVersion.dataset_id == dataset_id,
        DatasetVersion.business_date <= until,
        DatasetVersion.state != EXTERNAL,
    )
    if since is not None:
        query = query.where(DatasetVersion.business_date >= since)
    newest = query.order_by(DatasetVersion.business_date.desc(), DatasetVersion.seq.desc())
    return session.scalars(newest.limit(1)).first()


def list_waiting(session: Session, project: str) -> Sequence[DatasetVersion]:
    """Return the versions of a project's datasets that others wrote and nobody has checked yet."""
    return session.scalars(
        select(DatasetVersion)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .join(Project, Project.project_id == Dataset.project_id)
        .where(Project.name == project, DatasetVersion.state == WRITTEN)
        .order_by(DatasetVersion.dataset_version_id)
    ).all()
