"""Ingestion over HTTP: a real `floe api`, against the database that it writes to, in one run."""

import http.client
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psycopg

from benchmarks.events import Night
from benchmarks.naive import Copied, Inserted, InSqlite
from benchmarks.result import Result
from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi

BATCH = 500
SETTLE_SECONDS = 0.7
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

    def send(self, bodies: Sequence[bytes], connections: int = 1) -> None:
        """Send events over so many connections."""
        parts = [bodies[place::connections] for place in range(connections)]
        threads = [threading.Thread(target=self._send_all, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

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

    def send_batches(self, bodies: Sequence[bytes]) -> None:
        """Send events as NDJSON, some hundred a request."""
        headers = {**self._headers, "Content-Type": "application/x-ndjson"}
        connection = http.client.HTTPConnection("127.0.0.1", self._api.port)
        for start in range(0, len(bodies), BATCH):
            body = b"\n".join(bodies[start : start + BATCH])
            connection.request("POST", "/api/v1/lineage/batch", body, headers)
            answer = json.loads(connection.getresponse().read())
            assert answer["status"] == "success", answer
        connection.close()


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


Write = Callable[[Sequence[bytes]], None]


def beside(ours: Write, theirs: Write, bodies: Sequence[bytes]) -> tuple[float, float]:
    """Write the same events both ways, some hundred in turn; return events a second of each.

    So a machine that is slow for a while is slow for both. In between there is time for what one
    has put off, such as the search, so that it does not slow the other down.
    """
    spent = [0.0, 0.0]
    for place, start in enumerate(range(0, len(bodies), BATCH)):
        some = bodies[start : start + BATCH]
        for turn in (0, 1) if place % 2 else (1, 0):
            started = time.perf_counter()
            (ours, theirs)[turn](some)
            spent[turn] += time.perf_counter() - started
            time.sleep(SETTLE_SECONDS)
    return len(bodies) / spent[0], len(bodies) / spent[1]


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
    for connections, way, target in ((1, "1 connection", 1.5), (8, "8 connections", 3.0)):
        server.create_database(f"naive_{connections}")
        naive = Inserted(server.dsn(f"naive_{connections}"))
        with closing(naive), running_api(server.create_database(f"ours_{connections}")) as api:
            send = partial(api.send, connections=connections)
            new, known = (beside(send, naive.write, some) for some in (bodies, later))
        yield from _compare(way, "PostgreSQL, a commit an event", new, known, target)


def _compare(
    way: str, peer: str, new: tuple[float, float], known: tuple[float, float], target: float
) -> Iterator[Result]:
    ours, limit = (Rates(*rates) for rates in zip(new, known, strict=True))
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
    server.create_database("naive_batch")
    with running_api(server.create_database("batch")) as api:
        with closing(Copied(server.dsn("naive_batch"))) as naive:
            new, known = (beside(api.send_batches, naive.write, some) for some in (bodies, later))
        yield from _compare(f"batches of {BATCH}", "COPY and upsert", new, known, 1.0)
        api.send_batches(list(night.bodies(first_day=2)))
        early = api.resident_mb
        for day in range(3, NIGHTS):
            api.send_batches(list(night.bodies(first_day=day)))
        grown = api.resident_mb / early
        note = f"{api.resident_mb:.0f} MB after 100,000 events, {early:.0f} MB after 12,000"
        yield Result("ingest, memory after 100,000 events / after 12,000", grown, 1.2, note=note)


def _warm(server: PostgresqlServer, night: Night) -> Iterator[Result]:
    """Two catalogs in turn, one of which has a million events already."""
    with running_api(server.create_database("few")) as few:
        for day in range(3):
            few.send_batches(list(night.bodies(first_day=day)))
        with running_api(server.create_database("many")) as many:
            for day in range(3):
                many.send_batches(list(night.bodies(first_day=day)))
            _multiply(server.dsn("many"), 1_000_000)
            nights = [body for day in (900, 901, 902) for body in night.bodies(first_day=day)]
            large, small = beside(many.send_batches, few.send_batches, nights)
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
        naive = InSqlite(Path(folder) / "naive.db", 8)
        with closing(naive), running_api(f"sqlite:///{folder}/catalog.db") as api:
            rate, limit = beside(partial(api.send, connections=8), naive.write, bodies)
    note = f"{rate:.0f} against {limit:.0f} events/s"
    yield Result("ingest, SQLite, 8 connections / sqlite3, 8 events a commit", rate / limit, 0.5,
                 better="higher", note=note)  # fmt: skip
