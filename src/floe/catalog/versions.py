"""Versions: immutable states of a dataset, and how they change state."""

from datetime import date
from typing import Any, TypedDict, Unpack

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.changes import NewChange, record_change
from floe.catalog.datasets import record_dataset_event
from floe.catalog.errors import WrongStateError
from floe.catalog.tables import Dataset, DatasetVersion
from floe.spec.identity import version_tag

WRITING, PUBLISHING, WRITTEN = "WRITING", "PUBLISHING", "WRITTEN"

READY, REJECTED, ABANDONED = "READY", "REJECTED", "ABANDONED"

SUPERSEDED, RETRACTED, VACUUMED, EXTERNAL = "SUPERSEDED", "RETRACTED", "VACUUMED", "EXTERNAL"

# floe's own versions are WRITING, then PUBLISHING; another system's version that must be validated
# starts as WRITTEN. EXTERNAL was read but never announced, or was announced under a name that was
# joined to a dataset that floe writes itself.
NEXT_STATES: dict[str, frozenset[str]] = {
    WRITING: frozenset({PUBLISHING, REJECTED, ABANDONED}),
    PUBLISHING: frozenset({READY, REJECTED, ABANDONED}),
    WRITTEN: frozenset({READY, REJECTED, ABANDONED}),
    EXTERNAL: frozenset({WRITTEN, READY}),
    # READY can become REJECTED, because dbt tests a model after it can be read, and again later.
    READY: frozenset({SUPERSEDED, REJECTED, RETRACTED, VACUUMED}),
    SUPERSEDED: frozenset({READY, RETRACTED, VACUUMED}),
    RETRACTED: frozenset({VACUUMED}),
    REJECTED: frozenset({VACUUMED}),
    ABANDONED: frozenset({VACUUMED}),
    VACUUMED: frozenset(),
}

FIRST_STATES = frozenset({WRITING, WRITTEN, READY, EXTERNAL})


class VersionFacts(TypedDict, total=False):
    """The fields of a version besides its tag and state."""

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
    """Create a version with the next tag of its business date or partition.

    `own` means that floe writes the version, and marks the dataset as written by floe.
    """
    if state not in FIRST_STATES:
        raise WrongStateError("A new version", "not created yet", state, FIRST_STATES)
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
    _record_state(session, version, actor, {})
    return version


def _lock_dataset(session: Session, dataset_id: int) -> Dataset:
    # Lock the row so that two writers cannot take the same sequence number.
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
    # Another system may have announced or read a version with a tag of floe's form.
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
    """Move a version to its next state and set further fields."""
    if state not in NEXT_STATES[version.state]:
        subject = f"Version '{version.version_tag}'"
        raise WrongStateError(subject, version.state, state, NEXT_STATES[version.state])
    before, version.state = version.state, state
    for name, value in facts.items():
        setattr(version, name, value)
    _record_state(session, version, actor, {"from": before, "reason": reason})


def _record_state(
    session: Session, version: DatasetVersion, actor: str | None, detail: Any
) -> None:
    """Record the event of a new state, and a change that triggers read, if any."""
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
    """Retract a version; return the previous version if it is READY again.

    Use `stable_names.retract_and_mark` if the stable name may show the version.
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


def peek_tag(
    session: Session, dataset_id: int, business_date: date, partition_key: str | None = None
) -> str:
    """Return the next tag of a date or partition without reserving it."""
    seq = _next_seq(session, dataset_id, business_date, partition_key)
    return version_tag(partition_key or business_date.isoformat(), seq)


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
    """Record a rejected version of another system, which was never READY here.

    The version may exist as EXTERNAL, if a run read it. Repeating the call changes nothing.
    """
    version = _find_tag(session, dataset_id, tag)
    if version is not None and version.state != EXTERNAL:
        return
    if version is None:
        version = DatasetVersion(
            dataset_id=dataset_id,
            version_tag=tag,
            seq=_next_seq_of_date(session, dataset_id, business_date),
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
    """Reject a version if it is READY; else do nothing."""
    version = _find_tag(session, dataset_id, tag)
    if version is not None and version.state == READY:
        advance_version(session, version, REJECTED, actor=actor, reason=reason)


def _find_tag(session: Session, dataset_id: int, tag: str) -> DatasetVersion | None:
    return session.scalar(
        select(DatasetVersion).where(
            DatasetVersion.dataset_id == dataset_id, DatasetVersion.version_tag == tag
        )
    )


def _next_seq_of_date(session: Session, dataset_id: int, business_date: date) -> int:
    last = session.scalar(
        select(func.max(DatasetVersion.seq)).where(
            DatasetVersion.dataset_id == dataset_id, DatasetVersion.business_date == business_date
        )
    )
    return (last or 0) + 1
