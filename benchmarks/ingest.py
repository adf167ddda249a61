"""Ingestion over HTTP: a real `floe api`, against the database that it writes to, in one run."""

import http.client
import json
import socket
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.events import Night
from benchmarks.naive import copy_rate, insert_rate, sqlite_rate
from benchmarks.result import Result
from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi

BATCH = 500
NIGHTS = 25
"""So many nights of 4,000 events are 100,000."""


class Load:
    """Senders that load a running `floe api`."""

    def __init__(self, api: RunningApi) -> None:
        self._api, self._headers = api, api.headers

    @property
    def resident_mb(self) -> float:
        """The memory that the API and its writer have now, what they share counted once."""
        pids = (self._api.pid, self._api.writer_pid)
        return sum(_proportional_kb(pid) for pid in pids) / 1024

    def send(self, bodies: Sequence[bytes], connections: int = 1) -> float:
        """Send events over so many connections; return events a second."""
        parts = [bodies[place::connections] for place in range(connections)]
        threads = [threading.Thread(target=self._send_all, args=(part,)) for part in parts]
        started = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(bodies) / (time.perf_counter() - started)

    def _send_all(self, bodies: Sequence[bytes]) -> None:
        # By hand, because the sender shares the machine with what it measures.
        lines = [f"{name}: {value}" for name, value in self._headers.items()]
        head = "\r\n".join(["POST /api/v1/lineage HTTP/1.1", "Host: 127.0.0.1", *lines])
        with socket.create_connection(("127.0.0.1", self._api.port)) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for body in bodies:
                length = f"\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall((head + length).encode() + body)
                answer = connection.recv(65536)
                assert answer.startswith(b"HTTP/1.1 201"), answer

    def send_batches(self, bodies: Sequence[bytes]) -> float:
        """Send events as NDJSON, some hundred a request; return events a second."""
        headers = {**self._headers, "Content-Type": "application/x-ndjson"}
        connection = http.client.HTTPConnection("127.0.0.1", self._api.port)
        started = time.perf_counter()
        for start in range(0, len(bodies), BATCH):
            body = b"\n".join(bodies[start : start + BATCH])
            connection.request("POST", "/api/v1/lineage/batch", body, headers)
            answer = json.loads(connection.getresponse().read())
            assert answer["status"] == "success", answer
        return len(bodies) / (time.perf_counter() - started)


def _proportional_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


@contextmanager
def running_api(url: str) -> Iterator[Load]:
    """Start `floe api` on a catalog, and stop it at the end."""
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder:
        api = RunningApi(Path(folder), url).start()
        try:
            yield Load(api)
        finally:
            api.stop()


@dataclass(frozen=True)
class Rates:
    """Events a second: of a night in which everything is new, and of one like the night before."""

    new: float
    known: float

    @property
    def many(self) -> float:
        """Of 100,000 events, reckoned: one new night, and those after it that are like it."""
        return NIGHTS / (1 / self.new + (NIGHTS - 1) / self.known)

    def mean(self, other: "Rates") -> "Rates":
        return Rates((self.new + other.new) / 2, (self.known + other.known) / 2)


def run() -> Iterator[Result]:
    """Every ratio against a limit that was taken right beside it."""
    night = Night()
    bodies, later = list(night.bodies()), list(night.bodies(first_day=1))
    with PostgresqlServer() as server:
        yield from _single(server, bodies, later)
        yield from _batch(server, night, bodies, later)
        yield from _warm(server, night)
    yield from _sqlite(bodies)


def _single(
    server: PostgresqlServer, bodies: Sequence[bytes], later: Sequence[bytes]
) -> Iterator[Result]:
    server.create_database("naive")
    before = _inserted(server, bodies, later)
    with running_api(server.create_database("one")) as api:
        one = Rates(api.send(bodies), api.send(later))
    limit = before.mean(_inserted(server, bodies, later))
    peer = "PostgreSQL, a commit an event"
    yield from _compare("1 connection", one, peer, limit, 1.5)
    with running_api(server.create_database("eight")) as api:
        eight = Rates(api.send(bodies, connections=8), api.send(later, connections=8))
    yield from _compare("8 connections", eight, peer, limit, 3.0)


def _inserted(server: PostgresqlServer, new: Sequence[bytes], known: Sequence[bytes]) -> Rates:
    dsn = server.dsn("naive")
    return Rates(insert_rate(dsn, new), insert_rate(dsn, known, anew=False))


def _compare(way: str, ours: Rates, peer: str, limit: Rates, target: float) -> Iterator[Result]:
    for events, mine, theirs, how in (
        ("4,000", ours.new, limit.new, ""),
        ("100,000", ours.many, limit.many, ", reckoned from 8,000"),
    ):
        yield Result(
            f"ingest of {events} events, {way} / {peer}",
            mine / theirs,
            target,
            better="higher",
            note=f"{mine:.0f} against {theirs:.0f} events/s{how}",
        )


def _batch(
    server: PostgresqlServer, night: Night, bodies: Sequence[bytes], later: Sequence[bytes]
) -> Iterator[Result]:
    before = _copied(server, bodies, later)
    with running_api(server.create_database("batch")) as api:
        rates = Rates(api.send_batches(bodies), api.send_batches(later))
        limit = before.mean(_copied(server, bodies, later))
        yield from _compare(f"batches of {BATCH}", rates, "COPY and upsert", limit, 1.0)
        api.send_batches(list(night.bodies(first_day=2)))
        early = api.resident_mb
        for day in range(3, NIGHTS):
            api.send_batches(list(night.bodies(first_day=day)))
        grown = api.resident_mb / early
        note = f"{api.resident_mb:.0f} MB after 100,000 events, {early:.0f} MB after 12,000"
        yield Result("ingest, memory after 100,000 events / after 12,000", grown, 1.2, note=note)


def _copied(server: PostgresqlServer, new: Sequence[bytes], known: Sequence[bytes]) -> Rates:
    dsn = server.dsn("naive")
    return Rates(copy_rate(dsn, new, BATCH), copy_rate(dsn, known, BATCH, anew=False))


def _warm(server: PostgresqlServer, night: Night) -> Iterator[Result]:
    with running_api(server.create_database("warm")) as api:
        for day in range(3):
            api.send_batches(list(night.bodies(first_day=day)))
        small = max(api.send_batches(list(night.bodies(first_day=day))) for day in (3, 4, 5))
        _multiply(server.dsn("warm"), 1_000_000)
        large = max(api.send_batches(list(night.bodies(first_day=day))) for day in (900, 901, 902))
    note = f"{large:.0f} against {small:.0f} events/s"
    yield Result("ingest, warm at 1,000,000 stored events / at 12,000", large / small, 0.8,
                 better="higher", note=note)  # fmt: skip


COPIES = (
    """INSERT INTO run_event (event_day, event_hash, event_time, event_type, run_uuid, process_key,
           payload_json, payload_codec, historical, received_at)
       SELECT event_day - n, md5(event_hash || n), event_time - n * interval '1 day', event_type,
           md5(run_uuid::text || n)::uuid, process_key, payload_json, payload_codec, historical,
           received_at FROM run_event, generate_series(1, {times}) AS n""",
    """INSERT INTO process_run (run_uuid, process_id, business_date, start_ts, end_ts, status,
           attempt, historical, saw_success, saw_failure, created_at)
       SELECT md5(run_uuid::text || n)::uuid, process_id, business_date - n, start_ts, end_ts,
           status, attempt, historical, saw_success, saw_failure, created_at
       FROM process_run, generate_series(1, {times}) AS n""",
    """INSERT INTO dataset_version (dataset_id, version_tag, business_date, seq, state, row_count,
           schema_hash, produced_by_run_id, produced_at, legal_hold)
       SELECT dataset_id, version_tag || '-' || n, business_date - n, seq, state, row_count,
           schema_hash, md5(produced_by_run_id::text || n)::uuid, produced_at, legal_hold
       FROM dataset_version, generate_series(1, {times}) AS n""",
)


def _multiply(dsn: str, wanted: int) -> None:
    """Store what many more nights would have stored, straight from what one has."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        counted = connection.execute("SELECT count(*) FROM run_event").fetchone()
        assert counted is not None
        for statement in COPIES:
            connection.execute(statement.format(times=wanted // counted[0]).encode())
        connection.execute("VACUUM ANALYZE")


def _sqlite(bodies: Sequence[bytes]) -> Iterator[Result]:
    with tempfile.TemporaryDirectory(prefix="floe-bench-") as folder:
        limit = sqlite_rate(Path(folder) / "naive.db", bodies, 8)
        with running_api(f"sqlite:///{folder}/catalog.db") as api:
            rate = api.send(bodies, connections=8)
    note = f"{rate:.0f} against {limit:.0f} events/s"
    yield Result("ingest, SQLite, 8 connections / sqlite3, 8 events a commit", rate / limit, 0.5,
                 better="higher", note=note)  # fmt: skip
