"""The event door answers after the commit, and each sender gets its own answer."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.exc import OperationalError

from floe import clock
from floe.catalog import list_changes, list_versions
from floe.catalog.database import Catalog
from floe.catalog.datasets import find_dataset
from floe.catalog.recording import UnstorableClaimError, group
from floe.catalog.search import search_datasets
from floe.catalog.tables import ProcessRun, RunEvent
from floe.events import ingest
from floe.events.ingest import DoorBusyError, DoorClosedError, EventDoor, read_claim
from tests.events.factory import at, event, run_id, written


def count(catalog: Catalog, table: type[RunEvent] | type[ProcessRun]) -> int:
    with catalog.reading() as session:
        return session.scalars(select(func.count()).select_from(table)).one()


def test_the_answer_comes_after_the_commit(catalog: Catalog) -> None:
    with closing(EventDoor(catalog)) as door:
        answer = door.submit([read_claim(event("START", at(0)))])
        assert answer.result(timeout=30) == {}
        assert count(catalog, RunEvent) == 1


def test_many_senders_share_transactions_and_none_is_lost(catalog: Catalog) -> None:
    bodies = [event("COMPLETE", at(n), f"run {n}", outputs=[written("t")]) for n in range(60)]
    with closing(EventDoor(catalog)) as door, ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda body: door.submit([read_claim(body)]), bodies * 2))
        assert all(answer.result(timeout=60) == {} for answer in answers)
    assert (count(catalog, RunEvent), count(catalog, ProcessRun)) == (60, 60)


# SQLite stores U+0000 in a name, PostgreSQL rejects it.
@pytest.mark.postgresql
@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_an_invalid_event_gets_its_own_answer_and_the_others_are_stored(catalog: Catalog) -> None:
    claims = [read_claim(event("START", at(n), f"run {n}", f"job {n}")) for n in range(10)]
    claims[3].process_key = "AUTOSYS/bad\0name"
    with closing(EventDoor(catalog)) as door:
        wrong = door.submit(claims).result(timeout=60)
    assert list(wrong) == [3]
    assert isinstance(wrong[3], UnstorableClaimError)
    assert count(catalog, RunEvent) == 9


def test_a_full_door_rejects_events_before_memory_grows(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "MAX_WAITING", 3)
    release = threading.Event()
    monkeypatch.setattr(EventDoor, "_take", _held(EventDoor._take, release))
    door = EventDoor(catalog)
    claims = [read_claim(event("START", at(n), f"run {n}")) for n in range(5)]
    answers = [door.submit([claim]) for claim in claims[:3]]
    with pytest.raises(DoorBusyError):
        door.submit([claims[3]])
    release.set()
    assert all(answer.result(timeout=30) == {} for answer in answers)
    assert door.submit([claims[4]]).result(timeout=30) == {}
    door.close()


def _held(take: object, release: threading.Event) -> object:
    def held(door: EventDoor) -> object:
        release.wait(30)
        return take(door)  # type: ignore[operator]

    return held


def test_a_closing_door_writes_waiting_events_and_rejects_new_ones(catalog: Catalog) -> None:
    door = EventDoor(catalog)
    answers = [door.submit([read_claim(event("START", at(n), f"run {n}"))]) for n in range(20)]
    door.close()
    assert all(answer.result(timeout=1) == {} for answer in answers)
    assert not door.is_open
    with pytest.raises(DoorClosedError):
        door.submit([read_claim(event("START", at(99)))])


def test_recorded_datasets_are_found_by_the_search(catalog: Catalog) -> None:
    output = written("credit.exposure", columns=["counterparty"], description="what may be lost")
    with closing(EventDoor(catalog)) as door:
        door.submit([read_claim(event("COMPLETE", at(0), outputs=[output]))]).result(timeout=30)
    with catalog.reading() as session:
        for word in ("exposure", "counterparty", "lost"):
            hits = search_datasets(session, word).hits
            assert [hit.name for hit in hits] == ["credit.exposure"], word


def test_two_doors_on_one_catalog_neither_lose_nor_duplicate_events(catalog: Catalog) -> None:
    bodies = [
        event("COMPLETE", at(n % 7), f"run {n}", f"job {n % 5}", outputs=[written(f"t{n % 3}")])
        for n in range(80)
    ]
    doors = [EventDoor(catalog), EventDoor(catalog)]

    def send(index: int) -> dict[int, object]:
        claim = read_claim(bodies[index // 2])
        return dict(doors[index % 2].submit([claim]).result(timeout=120))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(send, range(160))) == [{}] * 160
    for door in doors:
        door.close()
    assert (count(catalog, RunEvent), count(catalog, ProcessRun)) == (80, 80)
    with catalog.reading() as session:
        assert find_dataset(session, "t0").name == "t0"


@pytest.mark.postgresql
@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_todays_events_have_a_partition_and_far_days_use_the_default_one(catalog: Catalog) -> None:
    today = clock.now()
    far = today - timedelta(days=3650)
    with closing(EventDoor(catalog)) as door:
        for index, moment in enumerate((today, far)):
            door.submit([read_claim(event("START", moment, f"run {index}"))]).result(timeout=30)
    with catalog.reading() as session:
        places = session.execute(text("SELECT tableoid::regclass::text FROM run_event ORDER BY 1"))
        assert list(places.scalars()) == [f"run_event_{today:%Y%m%d}", "run_event_default"]


def test_an_event_older_than_retention_only_adds_to_the_history(catalog: Catalog) -> None:
    now = clock.now()
    old, late = now - timedelta(days=91), now - timedelta(days=89)
    bodies = [
        event("COMPLETE", old, "old", outputs=[written("kept")]),
        event("FAIL", old, "old failure"),
        event("COMPLETE", late, "late", outputs=[written("awaited")]),
    ]
    with closing(EventDoor(catalog)) as door:
        assert door.submit([read_claim(body) for body in bodies]).result(timeout=30) == {}
    with catalog.reading() as session:
        awaited = find_dataset(session, "awaited").dataset_id
        assert len(list_versions(session, find_dataset(session, "kept").dataset_id)) == 1
        changes = [(change.kind, change.dataset_id) for change in list_changes(session, after=0)]
        assert changes == [("VERSION_READY", awaited)]
        runs = session.execute(select(ProcessRun.run_uuid, ProcessRun.historical))
        assert {run.run_uuid: run.historical for run in runs} == {
            run_id("old"): True,
            run_id("old failure"): True,
            run_id("late"): False,
        }


def test_an_event_within_a_longer_retention_is_live() -> None:
    old = clock.now() - timedelta(days=400)
    body = event("COMPLETE", old, outputs=[written("t")])
    assert read_claim(body).historical
    assert not read_claim(body, retention=timedelta(days=401)).historical
    # The longest retention that can be configured.
    assert not read_claim(body, retention=timedelta(days=999_999_999)).historical


def test_a_database_error_at_the_start_does_not_close_the_door(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: object) -> None:
        raise OperationalError("SELECT", {}, catalog.engine.dialect.loaded_dbapi.OperationalError())

    monkeypatch.setattr(group, "list_unindexed", fail)
    with closing(EventDoor(catalog)) as door:
        assert door.submit([read_claim(event("START", at(0)))]).result(timeout=30) == {}
        assert door.is_open
    assert "Earlier datasets were not indexed" in caplog.text
    assert count(catalog, RunEvent) == 1
