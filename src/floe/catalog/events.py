"""Raw events in bulk: read them in time order, and store the progress of imports."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from sqlalchemy import ColumnElement, Connection, func, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.recording import EventClaim, Recorder
from floe.catalog.run_events import EventFilter
from floe.catalog.stores import Store, store_of
from floe.catalog.tables import ImportState, RunEvent
from floe.spec.dates import DEFAULT_RULES, DateRules

ROWS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class StoredBody:
    """An event's body, encoded with its codec."""

    payload: bytes
    codec: str


@dataclass(frozen=True)
class ImportProgress:
    """The progress of an import: lines and bytes that are done, and lines rejected."""

    lines: int = 0
    bytes: int = 0
    rejected: int = 0


def stream_bodies(session: Session, wanted: EventFilter) -> Iterator[StoredBody]:
    """Yield the bodies of events in time order, a batch at a time.

    Reads day by day, because index and partitions are by day: no larger set is ever sorted.
    """
    conditions = list(_conditions(wanted))
    day = _first_day(session, wanted.since)
    while day is not None and (wanted.until is None or day <= _day_of(wanted.until)):
        rows = session.execute(
            select(RunEvent.payload_json, RunEvent.payload_codec)
            .where(RunEvent.event_day == day, *conditions)
            .order_by(RunEvent.event_time, RunEvent.event_hash)
            .execution_options(yield_per=ROWS_AT_ONCE)
        )
        for payload, codec in rows:
            yield StoredBody(bytes(payload), codec)
        day = session.scalar(select(func.min(RunEvent.event_day)).where(RunEvent.event_day > day))


@dataclass(frozen=True, slots=True)
class BodyWithId(StoredBody):
    """An event's body with its id; ids follow the order of recording."""

    event_id: int


def last_of_next_events(session: Session, after: int, limit: int) -> int | None:
    """Return the last id of the next `limit` events, or None if there are none."""
    page = (
        select(RunEvent.event_id)
        .where(RunEvent.event_id > after)
        .order_by(RunEvent.event_id)
        .limit(limit)
    )
    last: int | None = session.scalar(select(func.max(page.subquery().c.event_id)))
    return last


def list_bodies(session: Session, after: int, until: int) -> list[BodyWithId]:
    """Return the bodies of the events with ids in (after, until], sorted by id."""
    rows = session.execute(
        select(RunEvent.payload_json, RunEvent.payload_codec, RunEvent.event_id)
        .where(RunEvent.event_id > after, RunEvent.event_id <= until)
        .order_by(RunEvent.event_id)
    )
    return [BodyWithId(bytes(payload), codec, event_id) for payload, codec, event_id in rows]


def begin_import(session: Session, source: str, started_by: str | None) -> ImportProgress:
    """Return the progress of an import; create it if the source is new."""
    row = {
        "source": source,
        "done_lines": 0,
        "done_bytes": 0,
        "rejected_lines": 0,
        "started_by": started_by,
        "updated_at": clock.now(),
    }
    store_of(session).upsert(session, ImportState, [row], key=("source",), update=())
    state = session.get_one(ImportState, source)
    return ImportProgress(state.done_lines, state.done_bytes, state.rejected_lines)


def move_import(connection: Connection | Session, source: str, progress: ImportProgress) -> None:
    """Store the progress of an import, in the caller's transaction."""
    connection.execute(
        update(ImportState)
        .where(ImportState.source == source)
        .values(
            done_lines=progress.lines,
            done_bytes=progress.bytes,
            rejected_lines=progress.rejected,
            updated_at=clock.now(),
        )
    )


class ImportRecorder(Recorder):
    """Records claims, and in the same transaction the progress of their import."""

    def __init__(self, store: Store, source: str, dates: DateRules = DEFAULT_RULES) -> None:
        super().__init__(store, dates)
        self._source = source
        self._progress: dict[int, ImportProgress] = {}

    def expect(self, claim: EventClaim, progress: ImportProgress) -> None:
        """Set the import's progress to store together with this claim."""
        self._progress[id(claim)] = progress

    def clear(self) -> None:
        """Forget all expected claims."""
        self._progress.clear()

    def record(self, connection: Connection, claims: Sequence[EventClaim], now: datetime) -> None:
        """Write a group of claims, all or part of the expected ones."""
        move_import(connection, self._source, self._progress[id(claims[-1])])
        super().record(connection, claims, now)


def _first_day(session: Session, since: datetime | None) -> date | None:
    query = select(func.min(RunEvent.event_day))
    if since is not None:
        query = query.where(RunEvent.event_day >= _day_of(since))
    return session.scalar(query)


def _day_of(moment: datetime) -> date:
    return moment.astimezone(UTC).date()


def _conditions(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    if wanted.run_uuid is not None:
        yield RunEvent.run_uuid == wanted.run_uuid
    if wanted.process_key is not None:
        yield RunEvent.process_key == wanted.process_key
    if wanted.since is not None:
        yield RunEvent.event_time >= wanted.since
    if wanted.until is not None:
        yield RunEvent.event_time < wanted.until
