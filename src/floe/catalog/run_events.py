"""Raw events as received: list them by run, process and time, or get one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, select
from sqlalchemy.orm import Session

from floe.catalog.errors import NotFoundError
from floe.catalog.tables import RunEvent


class EventNotFoundError(NotFoundError):
    """No event has this id, or it was purged."""

    def __init__(self, event_id: int) -> None:
        super().__init__(f"No event with id {event_id}. It may have been purged.")


@dataclass(frozen=True)
class EventFilter:
    """Filters for events; None means any."""

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
    """Return events older than `before_id` without their bodies, newest first."""
    query = select(*_LISTED).where(*_conditions(wanted))
    if before_id is not None:
        query = query.where(_OF.event_id < before_id)
    return session.execute(query.order_by(_OF.event_id.desc()).limit(limit)).all()


def get_event(session: Session, event_id: int) -> Row[*tuple[Any, ...]]:
    """Return an event with its encoded body and the codec."""
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
    # The table is partitioned by day: filtering by day too skips the other partitions.
    if wanted.since is not None:
        yield _OF.event_day >= wanted.since.astimezone(UTC).date()
        yield _OF.event_time >= wanted.since
    if wanted.until is not None:
        yield _OF.event_day <= wanted.until.astimezone(UTC).date()
        yield _OF.event_time < wanted.until
