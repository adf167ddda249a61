"""All events reach another OpenLineage server in order, despite outages and kills."""

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from floe.catalog import read_cursor
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.tables import RunEvent
from floe.events import forwarding
from floe.events.forwarding import Destination, Forwarder
from floe.events.ingest import EventDoor, read_claim
from tests.events.factory import at, event
from tests.events.lineage_server import LineageServer

KEY = "Bearer s3cret"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("POLL_SECONDS", "FIRST_RETRY_SECONDS", "LAST_RETRY_SECONDS"):
        monkeypatch.setattr(forwarding, name, 0.02)


@pytest.fixture
def server() -> Iterator[LineageServer]:
    with LineageServer() as server:
        yield server


def record(catalog: Catalog, *jobs: str) -> None:
    with closing(EventDoor(catalog)) as door:
        for index, job in enumerate(jobs):
            body = event("START", at(index), run=job, job=job)
            assert door.submit([read_claim(body)]).result(timeout=60) == {}


@contextmanager
def forwarded(
    catalog: Catalog, url: str, holder: str = "one", lasts: float = 30
) -> Iterator[Forwarder]:
    destination = Destination(url, {"Authorization": KEY})
    forwarder = Forwarder(catalog, destination, holder, lasts=timedelta(seconds=lasts))
    forwarder.start()
    try:
        yield forwarder
    finally:
        forwarder.stop()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def names(count: int, start: int = 0) -> list[str]:
    return [f"job {index}" for index in range(start, start + count)]


def test_events_arrive_as_they_were_recorded_with_the_headers(
    catalog: Catalog, server: LineageServer
) -> None:
    jobs = names(forwarding.PAGE_SIZE + 10)
    record(catalog, *jobs[:20])
    with forwarded(catalog, server.url):
        wait_for(lambda: len(server.jobs) == 20)
        record(catalog, *jobs[20:])
        wait_for(lambda: len(server.jobs) == len(jobs))
    assert server.jobs == jobs
    assert json.loads(event("START", at(3), run="job 3", job="job 3")) in server.bodies
    assert set(server.keys) == {KEY}


@pytest.mark.parametrize("status", [500, 503, 429, 401])
def test_a_server_that_fails_for_a_while_gets_every_event_in_order(
    catalog: Catalog, server: LineageServer, status: int
) -> None:
    jobs = names(30)
    record(catalog, *jobs)
    server.answers = [200] * 7 + [status] * 4 + [200] * 3 + [status]
    with forwarded(catalog, server.url):
        wait_for(lambda: len(server.jobs) == 30)
    assert server.jobs == jobs


def test_a_server_that_starts_later_gets_every_event(catalog: Catalog) -> None:
    record(catalog, *names(5))
    with LineageServer() as gone:
        port = gone.port
    with forwarded(catalog, f"http://127.0.0.1:{port}"):
        time.sleep(0.2)
        with LineageServer(port) as server:
            wait_for(lambda: len(server.jobs) == 5)
            assert server.jobs == names(5)


def test_a_refused_event_is_logged_and_skipped(
    catalog: Catalog, server: LineageServer, caplog: pytest.LogCaptureFixture
) -> None:
    record(catalog, *names(4))
    server.answers = [200, 422]
    with caplog.at_level(logging.WARNING), forwarded(catalog, server.url):
        wait_for(lambda: len(server.jobs) == 3)
    assert server.jobs == ["job 0", "job 2", "job 3"]
    assert "was rejected and is skipped" in caplog.text
    assert "answered 422: invalid event" in caplog.text
    assert KEY not in caplog.text


def test_a_new_forwarder_continues_where_the_last_one_stopped(
    catalog: Catalog, server: LineageServer
) -> None:
    record(catalog, *names(10))
    with forwarded(catalog, server.url, "one"):
        wait_for(lambda: len(server.jobs) == 10)
    record(catalog, *names(10, 10))
    with forwarded(catalog, server.url, "two"):
        wait_for(lambda: len(server.jobs) == 20)
    assert server.jobs == names(20)


def test_only_one_of_two_forwarders_sends_until_the_other_takes_over(
    catalog: Catalog, server: LineageServer
) -> None:
    with forwarded(catalog, server.url, "two") as second:
        with forwarded(catalog, server.url, "one"):
            record(catalog, *names(60))
            wait_for(lambda: len(server.jobs) >= 30)
            second.stop()
        with forwarded(catalog, server.url, "three"):
            wait_for(lambda: len(server.jobs) == 60)
    assert server.jobs == names(60)


def test_a_forwarder_that_lost_its_lease_does_not_move_the_cursor(
    catalog: Catalog, server: LineageServer
) -> None:
    record(catalog, *names(3))
    destination = Destination(server.url)
    asleep = Forwarder(catalog, destination, "asleep", lasts=timedelta(seconds=0.01))
    assert asleep._has_lease()
    time.sleep(0.05)
    with forwarded(catalog, server.url, "awake"):
        wait_for(lambda: len(server.jobs) == 3)
    with pytest.raises(forwarding.ForwarderReplacedError):
        asleep._save(99)
    with catalog.reading() as session:
        assert read_cursor(session, destination.reader) < 99


@pytest.mark.postgresql
@pytest.mark.parametrize("catalog", ["postgresql"], indirect=True)
def test_an_event_committed_late_with_a_lower_id_is_not_skipped(
    catalog: Catalog, server: LineageServer
) -> None:
    """A transaction commits its id after another one committed a higher id."""
    copied = (
        "INSERT INTO run_event (event_day, event_hash, event_time, event_type, payload_json, "
        "payload_codec, historical, received_at) SELECT event_day, 'late', event_time, "
        "event_type, convert_to(:body, 'UTF8'), 'json', historical, received_at FROM run_event"
    )
    record(catalog, "job 0")
    late = event("START", at(1), run="late", job="late").decode()
    with catalog.engine.connect() as slow:
        slow.execute(text(copied), {"body": late})
        record(catalog, "job 1")
        with forwarded(catalog, server.url):
            time.sleep(0.3)
            slow.commit()
            wait_for(lambda: len(server.jobs) == 3)
    assert server.jobs == ["job 0", "late", "job 1"]


def test_a_damaged_event_is_skipped(catalog: Catalog, server: LineageServer) -> None:
    record(catalog, "job 0", "job 1")
    with catalog.writing() as session:
        first = session.scalars(select(RunEvent).order_by(RunEvent.event_id)).first()
        assert first is not None
        first.payload_json = b"not compressed"
    with forwarded(catalog, server.url):
        wait_for(lambda: len(server.jobs) == 1)
    assert server.jobs == ["job 1"]


def test_the_cursor_is_the_same_with_and_without_the_path() -> None:
    assert Destination("http://marquez:5000/api/v1/lineage").base == "http://marquez:5000"
    assert Destination("http://marquez:5000/").reader == "openlineage http://marquez:5000"
    assert len(Destination("http://marquez/" + "a" * 300).reader) <= 200


def test_a_forwarder_stops_although_the_server_does_not_answer(
    catalog: Catalog, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarding, "STOP_SECONDS", 0.2)
    record(catalog, "job 0")
    server.hold = threading.Event()
    with forwarded(catalog, server.url) as forwarder:
        wait_for(lambda: server.waiting > 0)
    server.hold.set()
    # It ends before its catalog does.
    monkeypatch.setattr(forwarding, "STOP_SECONDS", 60)
    forwarder.stop()


def test_a_forwarder_stops_although_the_catalog_is_gone(
    tmp_path: Path, server: LineageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = open_catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    upgrade_catalog(catalog)
    record(catalog, "job 0")
    monkeypatch.setattr(forwarding, "STOP_SECONDS", 60)
    with forwarded(catalog, server.url):
        wait_for(lambda: len(server.jobs) == 1)
        catalog.close()
        (tmp_path / "catalog.db").unlink()
        tmp_path.chmod(0o500)
    tmp_path.chmod(0o700)
