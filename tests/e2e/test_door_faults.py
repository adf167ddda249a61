"""The event door under faults: every event answered 201 is stored once."""

import hashlib
import itertools
import os
import random
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text

from floe.catalog.database import open_catalog
from floe.execution.os_processes import start_of, wait_until
from tests.events.factory import at, event, read, recently, written
from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi

ROUNDS = int(os.environ.get("FLOE_SOAK_ROUNDS", "1"))
# Share of the rounds in which the writer is killed first and the API continues without it.
WRITER_SHARE = 0.3


def endless_night(prefix: str) -> Iterator[bytes]:
    """Events of distinct runs that share jobs and datasets."""
    for index in itertools.count():
        yield event(
            "COMPLETE",
            recently(index % 60),
            f"{prefix} {index}",
            f"job {index % 7}",
            inputs=[read(f"in.t{index % 5}")],
            outputs=[written(f"out.t{index % 3}", columns=["a", "b"], rows=index)],
        )


def night(prefix: str, size: int) -> list[bytes]:
    """Return a number of such events."""
    return list(itertools.islice(endless_night(prefix), size))


class Sender:
    """Sends events one after the other, and records which were answered 201."""

    def __init__(self, api: RunningApi, bodies: Iterable[bytes]) -> None:
        self._api, self._bodies = api, bodies
        self.committed: list[bytes] = []
        self.statuses: set[int] = set()
        self._thread = threading.Thread(target=self._run)
        self._stopping = threading.Event()
        self._thread.start()

    def _run(self) -> None:
        for body in self._bodies:
            if self._stopping.is_set():
                return
            status = self._api.send(body)
            self.statuses.add(status)
            if status == 201:
                self.committed.append(body)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()

    def join(self) -> None:
        """Wait until all events were sent."""
        self._thread.join()


def counted(url: str) -> dict[str, int]:
    """Count rows, duplicates and gaps."""
    catalog = open_catalog(url)
    queries = {
        "events": "SELECT count(*) FROM run_event",
        "runs": "SELECT count(*) FROM process_run",
        "versions": "SELECT count(*) FROM dataset_version",
        "runs twice": "SELECT count(*) - count(DISTINCT run_uuid) FROM process_run",
        "versions of a run twice": (
            "SELECT count(*) FROM (SELECT 1 FROM dataset_version "
            "GROUP BY dataset_id, produced_by_run_id HAVING count(*) > 1) AS doubled"
        ),
        "changes": "SELECT count(*) FROM change",
        "gaps": "SELECT max(change_position) - count(*) FROM change",
        "ready twice": (
            "SELECT count(*) FROM (SELECT 1 FROM dataset_version WHERE state = 'READY' "
            "GROUP BY dataset_id, business_date HAVING count(*) > 1) AS doubled"
        ),
    }
    with catalog.reading() as session:
        counts = {name: session.execute(text(query)).scalar() for name, query in queries.items()}
    catalog.close()
    return {name: int(count or 0) for name, count in counts.items()}


@contextmanager
def two_apis(folder: Path, url: str) -> Iterator[list[RunningApi]]:
    """Two processes that serve one catalog."""
    apis = [RunningApi(folder / name, url) for name in ("0", "1")]
    for api in apis:
        api.folder.mkdir()
    with apis[0]:
        # The administrator's token is created once per catalog.
        shutil.copytree(apis[0].folder / ".floe", apis[1].folder / ".floe")
        with apis[1]:
            yield apis


@pytest.fixture
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    server: PostgresqlServer = request.getfixturevalue("durable_postgresql")
    name = f"faults_{uuid.uuid4().hex}"
    yield server.create_database(name)
    server.drop_database(name)


@pytest.fixture(scope="module")
def durable_postgresql() -> Iterator[PostgresqlServer]:
    """A PostgreSQL server with fsync on."""
    with PostgresqlServer() as server:
        yield server


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.postgresql
@pytest.mark.timeout(7200)
def test_events_answered_201_are_stored_once_after_kills(database: str, tmp_path: Path) -> None:
    answered: set[bytes] = set()
    with two_apis(tmp_path, database) as apis:
        for round_ in range(ROUNDS):
            bodies = night(f"round {round_}", 400)
            senders = [Sender(apis[index % 2], bodies[index::6]) for index in range(6)]
            time.sleep(random.uniform(0.2, 1.5))
            victim = apis[round_ % 2]
            if random.random() < WRITER_SHARE:
                os.kill(victim.writer_pid, signal.SIGKILL)
                time.sleep(random.uniform(0.0, 0.5))
            victim.kill()
            time.sleep(0.1)
            for sender in senders:
                sender.stop()
                answered.update(sender.committed)
            victim.start()
    assert answered
    assert not any("Traceback" in (api.folder / "api.log").read_text() for api in apis)
    counts = counted(database)
    doubled = ("runs twice", "versions of a run twice", "gaps", "ready twice")
    assert {name: counts[name] for name in doubled} == dict.fromkeys(doubled, 0)
    # Events that were committed and whose answer was lost are stored too.
    assert counts["events"] >= len(answered)
    assert counts["events"] == counts["runs"] == counts["versions"] == counts["changes"]
    assert missing(database, answered) == []


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_killed_writer_is_replaced_and_events_are_accepted_meanwhile(
    database: str, tmp_path: Path
) -> None:
    with RunningApi(tmp_path, database) as api:
        senders = [Sender(api, night(f"sender {index}", 60)) for index in range(4)]
        time.sleep(0.3)
        killed = api.writer_pid
        os.kill(killed, signal.SIGKILL)
        for sender in senders:
            sender.join()
        assert {status for sender in senders for status in sender.statuses} <= {201, 503}
        assert api.send(event("START", at(0), "after")) == 201
        assert wait_until(partial(api.has_writer_after, killed), 60)
        second = [Sender(api, night(f"second {index}", 20)) for index in range(4)]
        for sender in second:
            sender.join()
        assert {status for sender in second for status in sender.statuses} == {201}
    answered = {body for sender in [*senders, *second] for body in sender.committed}
    assert missing(database, answered) == []
    assert "a new process starts in" in (tmp_path / "api.log").read_text()


@pytest.mark.slow
def test_events_are_accepted_while_the_writer_is_killed_repeatedly(tmp_path: Path) -> None:
    with RunningApi(tmp_path, f"sqlite:///{tmp_path / 'catalog.db'}") as api:
        for attempt in range(3):
            killed = api.writer_pid
            os.kill(killed, signal.SIGKILL)
            assert wait_until(partial(is_gone, killed), 10)
            assert api.send(event("START", at(attempt), f"run {attempt}")) in (201, 503)
            assert wait_until(partial(api.has_writer_after, killed), 60)
        assert api.send(event("START", at(9), "last")) == 201
        gone = partial(is_gone, api.writer_pid)
    assert wait_until(gone, 10)


def is_gone(pid: int) -> bool:
    return start_of(pid) is None


@pytest.mark.slow
def test_the_writer_stops_with_its_api(tmp_path: Path) -> None:
    with RunningApi(tmp_path, f"sqlite:///{tmp_path / 'catalog.db'}") as api:
        assert api.send(event("START", at(0), "before")) == 201
        for end in (api.stop, api.kill):
            gone = partial(is_gone, api.writer_pid)
            end()
            assert wait_until(gone, 10)
            api.start()


def missing(url: str, bodies: set[bytes]) -> list[str]:
    catalog = open_catalog(url)
    with catalog.reading() as session:
        rows = session.execute(text("SELECT event_hash FROM run_event"))
        stored = {event_hash for (event_hash,) in rows}
    catalog.close()
    hashes = [hashlib.sha256(body).hexdigest() for body in bodies]
    return [event_hash for event_hash in hashes if event_hash not in stored]


@pytest.mark.slow
@pytest.mark.postgresql
def test_a_restart_of_postgresql_under_load_gives_503_until_it_is_up(tmp_path: Path) -> None:
    with PostgresqlServer() as server:
        url = server.create_database("restarted")
        with RunningApi(tmp_path, url) as api, sending(api, 4) as senders:
            assert wait_until(partial(all_commit_more, senders, [0] * 4), 30)
            server.stop()
            assert wait_until(lambda: all(503 in sender.statuses for sender in senders), 30)
            server.start()
            before = [len(sender.committed) for sender in senders]
            assert wait_until(partial(all_commit_more, senders, before), 30)
        assert {status for sender in senders for status in sender.statuses} == {201, 503}
        answered = {body for sender in senders for body in sender.committed}
        counts = counted(url)
        assert missing(url, answered) == []
    doubled = ("runs twice", "versions of a run twice", "gaps", "ready twice")
    assert {name: counts[name] for name in doubled} == dict.fromkeys(doubled, 0)
    # Events that were committed and whose answer was lost are stored too.
    assert counts["events"] >= len(answered)
    assert counts["events"] == counts["runs"] == counts["versions"] == counts["changes"]
    assert "Traceback" not in (tmp_path / "api.log").read_text()


@contextmanager
def sending(api: RunningApi, count: int) -> Iterator[list[Sender]]:
    """Let senders send until the block ends."""
    senders = [Sender(api, endless_night(f"sender {index}")) for index in range(count)]
    try:
        yield senders
    finally:
        for sender in senders:
            sender.stop()


def all_commit_more(senders: list[Sender], before: list[int]) -> bool:
    """Tell whether each sender has been answered 201 several times since."""
    return all(
        len(sender.committed) > count + 5 for sender, count in zip(senders, before, strict=True)
    )


@pytest.mark.slow
def test_a_full_disk_gives_503_and_nothing_is_half_written(tmp_path: Path) -> None:
    file = tmp_path / "catalog.db"
    with RunningApi(tmp_path, f"sqlite:///{file}") as api:
        assert api.send(event("START", at(0), "before")) == 201
        api.stop()
        api.start(most_bytes=file.stat().st_size + 200_000)
        statuses = [api.send(body) for body in night("full", 60)]
        api.kill()
    assert 503 in statuses
    assert set(statuses) <= {201, 503}
    counts = counted(api.url)
    assert counts["events"] == counts["runs"] == statuses.count(201) + 1
    assert counts["versions"] == statuses.count(201)
