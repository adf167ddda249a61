"""Raw events by day: partitions are created ahead of time."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, time, timedelta

import pytest
from sqlalchemy import func, inspect, select, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from floe.catalog.database import Catalog
from floe.catalog.stores import store_of
from floe.catalog.tables import RunEvent

MONDAY = date(2026, 9, 7)
TUESDAY = MONDAY + timedelta(1)
LONG_AGO = date(2019, 1, 1)
FRIDAY = MONDAY + timedelta(4)

on_postgresql = pytest.mark.parametrize(
    "catalog", [pytest.param("postgresql", marks=pytest.mark.postgresql)], indirect=True
)


def add_event(session: Session, day: date, name: str = "start") -> None:
    event_time = datetime.combine(day, time(6), UTC)
    row = {
        "event_day": day,
        "event_hash": f"{day} {name}",
        "event_time": event_time,
        "event_type": "START",
        "payload_json": b"\x00{}",
        "payload_codec": "none",
        "historical": False,
        "received_at": event_time,
    }
    store_of(session).upsert(session, RunEvent, [row], key=("event_day", "event_hash"), update=())


def prepare(catalog: Catalog, first: date = MONDAY, last: date = FRIDAY) -> None:
    with catalog.writing() as session:
        store_of(session).prepare_event_days(session, first, last)


def event_days(catalog: Catalog) -> list[date]:
    with catalog.reading() as session:
        return list(session.scalars(select(RunEvent.event_day).order_by(RunEvent.event_day)))


def partitions(catalog: Catalog) -> list[str]:
    names = inspect(catalog.engine).get_table_names()
    return sorted(name for name in names if name.startswith("run_event_"))


def count(catalog: Catalog, table: str) -> int:
    with catalog.reading() as session:
        return int(session.scalars(text(f"SELECT count(*) FROM {table}")).one())


@pytest.fixture
def filled(catalog: Catalog) -> Catalog:
    """A catalog with an event on Monday and on Friday."""
    prepare(catalog)
    with catalog.writing() as session:
        add_event(session, MONDAY)
        add_event(session, FRIDAY)
    return catalog


def test_the_same_event_twice_is_stored_once(catalog: Catalog) -> None:
    with catalog.writing() as session:
        add_event(session, MONDAY)
        add_event(session, MONDAY)
    assert event_days(catalog) == [MONDAY]


def test_events_get_ascending_ids(filled: Catalog) -> None:
    with filled.reading() as session:
        event_ids = session.scalars(select(RunEvent.event_id).order_by(RunEvent.event_day)).all()
    assert event_ids == sorted(set(event_ids))


def test_an_event_of_a_day_without_partition_is_stored(filled: Catalog) -> None:
    with filled.writing() as session:
        add_event(session, LONG_AGO)
    assert event_days(filled) == [LONG_AGO, MONDAY, FRIDAY]


@on_postgresql
def test_each_prepared_day_has_a_partition(catalog: Catalog) -> None:
    prepare(catalog, MONDAY, TUESDAY)
    wanted = ["run_event_20260907", "run_event_20260908", "run_event_default"]
    assert partitions(catalog) == wanted
    prepare(catalog, MONDAY, TUESDAY)
    assert partitions(catalog) == wanted


@on_postgresql
def test_an_event_is_in_the_partition_of_its_day(filled: Catalog) -> None:
    assert count(filled, "run_event_20260907") == 1
    assert count(filled, "run_event_default") == 0


@on_postgresql
def test_events_that_arrived_before_their_partition_are_moved_into_it(catalog: Catalog) -> None:
    with catalog.writing() as session:
        add_event(session, MONDAY)
        add_event(session, FRIDAY)
        before = session.scalars(select(func.max(RunEvent.event_id))).one()
    prepare(catalog, MONDAY, TUESDAY)
    assert count(catalog, "run_event_20260907") == 1
    assert count(catalog, "run_event_default") == 1
    with catalog.writing() as session:
        add_event(session, MONDAY)
        add_event(session, MONDAY, "complete")
        assert session.scalars(select(func.max(RunEvent.event_id))).one() > before
    assert count(catalog, "run_event_20260907") == 2


@on_postgresql
def test_payloads_are_not_compressed_a_second_time(filled: Catalog) -> None:
    stored = text(
        "SELECT DISTINCT attstorage FROM pg_attribute "
        "WHERE attname = 'payload_json' AND attrelid::regclass::text LIKE 'run_event%'"
    )
    with filled.reading() as session:
        assert session.scalars(stored).all() == ["e"]


@on_postgresql
def test_processes_that_prepare_days_at_once_wait_for_each_other(catalog: Catalog) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare, [catalog] * 4))
    assert len(partitions(catalog)) == 6


@on_postgresql
def test_events_come_in_while_days_are_prepared(catalog: Catalog) -> None:
    days = [MONDAY + timedelta(offset) for offset in range(20)]

    def write(day: date) -> None:
        with catalog.writing() as session:
            add_event(session, day)

    with ThreadPoolExecutor(6) as pool:
        written = [pool.submit(write, day) for day in days]
        prepared = [pool.submit(prepare, catalog, day, day) for day in days]
        for future in [*written, *prepared]:
            future.result()
    assert event_days(catalog) == days
    assert count(catalog, "run_event_default") == 0


@on_postgresql
def test_a_long_reader_delays_new_partitions_but_not_ingestion(filled: Catalog) -> None:
    saturday = FRIDAY + timedelta(1)
    with filled.reading() as reader:
        reader.execute(select(func.count()).select_from(RunEvent))
        with pytest.raises(OperationalError, match="lock timeout"):
            prepare(filled, saturday, saturday)
        with filled.writing() as session:
            add_event(session, FRIDAY, "complete")
    prepare(filled, saturday, saturday)
    assert "run_event_20260912" in partitions(filled)
