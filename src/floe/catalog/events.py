"""Raw events in bulk: read them all in the order of their time, and keep an import's place."""

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
    """An event's body, packed as its codec says."""

    payload: bytes
    codec: str


@dataclass(frozen=True)
class ImportProgress:
    """How far an import has come: lines and bytes that need not be read again."""

    lines: int = 0
    bytes: int = 0
    rejected: int = 0


def stream_bodies(session: Session, wanted: EventFilter) -> Iterator[StoredBody]:
    """Yield the bodies of events by their time, a few in memory at once.

    It goes day by day, because a day is what the index and the partitions can hand out: nothing
    larger is ever sorted.
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


def begin_import(session: Session, source: str, started_by: str | None) -> ImportProgress:
    """Return how far the import of a source has come; a new one begins here."""
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
    """Remember how far the import of a source has come, with all else that is committed then."""
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
    """Records claims, and in the same transaction how far their source is read after them."""

    def __init__(self, store: Store, source: str, dates: DateRules = DEFAULT_RULES) -> None:
        super().__init__(store, dates)
        self._source = source
        self._places: dict[int, ImportProgress] = {}

    def expect(self, claim: EventClaim, progress: ImportProgress) -> None:
        """Say where the source is read up to once this claim is recorded."""
        self._places[id(claim)] = progress

    def clear(self) -> None:
        """Forget the claims that were expected."""
        self._places.clear()

    def record(self, connection: Connection, claims: Sequence[EventClaim], now: datetime) -> None:
        """Write a group of claims, which may be a part of those expected together."""
        move_import(connection, self._source, self._places[id(claims[-1])])
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
