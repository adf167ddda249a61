"""Raw events in bulk: reading them in time order, and the progress of an import."""

from datetime import UTC, date, datetime, timedelta

from sqlalchemy.orm import Session

from floe.catalog.database import Catalog
from floe.catalog.events import ImportProgress, begin_import, move_import, stream_bodies
from floe.catalog.run_events import EventFilter
from floe.catalog.stores import store_of
from floe.catalog.tables import RunEvent

MONDAY = datetime(2026, 9, 7, tzinfo=UTC)
FX, EXPOSURE = "AUTOSYS/EOD/FX", "AUTOSYS/EOD/EXPOSURE"
RUN = "00000000-0000-0000-0000-000000000001"


def add(session: Session, hours: float, process: str = FX, run: str | None = None) -> None:
    moment = MONDAY + timedelta(hours=hours)
    body = f"{process.rpartition('/')[2]} {hours:g}".encode()
    row = {
        "event_day": moment.date(),
        "event_hash": body.decode(),
        "event_time": moment,
        "event_type": "run.start",
        "run_uuid": run,
        "process_key": process,
        "payload_json": body,
        "payload_codec": "json",
        "historical": False,
        "received_at": moment,
    }
    store_of(session).upsert(session, RunEvent, [row], key=("event_day", "event_hash"), update=())


def fill(catalog: Catalog) -> None:
    with catalog.writing() as session:
        for hours in (50, 6, 30, 7):
            add(session, hours)
        add(session, 31, EXPOSURE, RUN)
        store_of(session).prepare_event_days(session, date(2026, 9, 8), date(2026, 9, 8))


def bodies(catalog: Catalog, wanted: EventFilter) -> list[str]:
    with catalog.reading() as session:
        return [stored.payload.decode() for stored in stream_bodies(session, wanted)]


def test_events_are_ordered_by_time_not_by_arrival(catalog: Catalog) -> None:
    fill(catalog)
    assert bodies(catalog, EventFilter()) == ["FX 6", "FX 7", "FX 30", "EXPOSURE 31", "FX 50"]


def test_only_matching_events_are_returned(catalog: Catalog) -> None:
    fill(catalog)
    assert bodies(catalog, EventFilter(process_key=EXPOSURE)) == ["EXPOSURE 31"]
    assert bodies(catalog, EventFilter(run_uuid=RUN)) == ["EXPOSURE 31"]
    since, until = MONDAY + timedelta(hours=7), MONDAY + timedelta(hours=31)
    assert bodies(catalog, EventFilter(since=since, until=until)) == ["FX 7", "FX 30"]
    assert bodies(catalog, EventFilter(since=MONDAY + timedelta(days=9))) == []


def test_an_empty_catalog_has_no_events(catalog: Catalog) -> None:
    assert bodies(catalog, EventFilter()) == []


def test_an_import_starts_at_zero_and_resumes_where_it_stopped(catalog: Catalog) -> None:
    with catalog.writing() as session:
        assert begin_import(session, "blake2b:1", "ops") == ImportProgress()
        move_import(session, "blake2b:1", ImportProgress(10, 2_000, 1))
    with catalog.writing() as session:
        assert begin_import(session, "blake2b:1", "another") == ImportProgress(10, 2_000, 1)
        assert begin_import(session, "blake2b:2", None) == ImportProgress()
