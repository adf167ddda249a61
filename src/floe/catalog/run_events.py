"""Raw events as they came: listed by run, process and time, and one with its body."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.orm import Session

from floe.catalog.errors import NotFoundError
from floe.catalog.tables import RunEvent


class EventNotFoundError(NotFoundError):
    """An event was named that the catalog does not hold, or does not hold any more."""

    def __init__(self, event_id: int) -> None:
        super().__init__(f"No event has the number {event_id}. It may have been purged.")


@dataclass(frozen=True)
class EventFilter:
    """Which events are wanted; what is not said does not matter."""

    run_uuid: str | None = None
    process_key: str | None = None
    since: datetime | None = None
    until: datetime | None = None


_OF = RunEvent.__table__.c
_LISTED = (
    _OF.event_id,
    _OF.event_time,
    _OF.event_type,
    _OF.run_uuid,
    _OF.process_key,
    _OF.historical,
    _OF.received_at,
)


def page_events(
    session: Session, wanted: EventFilter, *, before_id: int | None = None, limit: int = 100
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return events without their bodies, the newest first, from before one on."""
    query = select(*_LISTED).where(*_conditions(wanted))
    if before_id is not None:
        query = query.where(_OF.event_id < before_id)
    return session.execute(query.order_by(_OF.event_id.desc()).limit(limit)).all()


def get_event(session: Session, event_id: int) -> Row[*tuple[Any, ...]]:
    """Return an event with its body, packed as its codec says."""
    row = session.execute(
        select(*_LISTED, _OF.payload_json, _OF.payload_codec).where(_OF.event_id == event_id)
    ).one_or_none()
    if row is None:
        raise EventNotFoundError(event_id)
    return row


def _conditions(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.run_uuid is not None:
        yield _OF.run_uuid == wanted.run_uuid
    if wanted.process_key is not None:
        yield _OF.process_key == wanted.process_key
    # The day is what the table is partitioned by: with it, only those days are read.
    if wanted.since is not None:
        yield _OF.event_day >= wanted.since.astimezone(UTC).date()
        yield _OF.event_time >= wanted.since
    if wanted.until is not None:
        yield _OF.event_day <= wanted.until.astimezone(UTC).date()
        yield _OF.event_time < wanted.until
