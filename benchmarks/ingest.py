"""Ingestion over HTTP by a real `floe api`, compared with bare writes to the same database."""

import http.client
import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import psycopg
from rich.console import Console
from rich.progress import track

from benchmarks.events import Night
from benchmarks.naive import Copied, Inserted, InSqlite
from benchmarks.result import Result
from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi

BATCH = 500
# Number of events written one way before the next way takes its turn.
PORTION, LARGE_PORTION = 500, 2_000
SETTLE_SECONDS = 0.7
# A night has 4,000 events.
NIGHTS = 25
SHOWN, FEW = (4_000, 100_000), 12_000
PROGRESS = Console(stderr=True)


class Load:
    """Senders that load a running `floe api`."""

    def __init__(self, api: RunningApi) -> None:
        self._api, self._headers = api, api.headers

    @property
    def resident_mb(self) -> float:
        """Return the current memory of the API and its writer, counting shared memory once."""
        pids = (self._api.pid, self._api.writer_pid)
        return sum(_proportional_kb(pid) for pid in pids) / 1024

    def send(self, bodies: Sequence[bytes], connections: int = 1) -> None:
        """Send events over a number of connections."""
        parts = [bodies[place::connections] for place in range(connections)]
        threads = [threading.Thread(target=self._send_all, args=(part,)) for part in parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _send_all(self, bodies: Sequence[bytes]) -> None:
        # Written by hand to be cheap, because the sender runs on the measured machine.
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
        """Send events as NDJSON, some hundred per request."""
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


Write = Callable[[Sequence[bytes]], None]


def in_turn(bodies: Sequence[bytes], *ways: Write, portion: int = PORTION) -> list[float]:
    """Write the same events each way in turns of some hundred; return the seconds of each.

    So a machine that is slow for a while is slow for all. The pauses leave time for postponed
    work, such as search indexing, so that it does not slow down the next way.
    """
    spent = [0.0] * len(ways)
    for place, start in enumerate(range(0, len(bodies), portion)):
        some = bodies[start : start + portion]
        for turn in range(len(ways)) if place % 2 else reversed(range(len(ways))):
            started = time.perf_counter()
            ways[turn](some)
            spent[turn] += time.perf_counter() - started
            time.sleep(SETTLE_SECONDS)
    return spent


def night_after_night(night: Night, *ways: Write) -> Iterator[tuple[int, list[float]]]:
    """Yield after each night the number of events and the rate of each way so far."""
    total = [0.0] * len(ways)
    unseen = not PROGRESS.is_terminal
    for day in track(range(NIGHTS), "nights", console=PROGRESS, transient=True, disable=unseen):
        bodies = list(night.bodies(first_day=day))
        # The first night, in which everything is new, is reported separately.
        spent = in_turn(bodies, *ways, portion=LARGE_PORTION if day else PORTION)
        total = [before + more for before, more in zip(total, spent, strict=True)]
        events = (day + 1) * len(bodies)
        yield events, [events / seconds for seconds in total]


def run() -> Iterator[Result]:
    """Yield every ratio to a limit that was measured next to it."""
    night = Night()
    with PostgresqlServer() as server:
        yield from _single(server, night)
        yield from _batch(server, night)
        yield from _warm(server, night)
    yield from _sqlite(list(night.bodies()))


def _single(server: PostgresqlServer, night: Night) -> Iterator[Result]:
    server.create_database("naive")
    with (
        closing(Inserted(server.dsn("naive"))) as naive,
        running_api(server.create_database("one")) as one,
        running_api(server.create_database("eight")) as eight,
    ):
        ways = one.send, partial(eight.send, connections=8), naive.write
        peer = "pipelined PostgreSQL, a commit an event"
        for events, (alone, together, limit) in night_after_night(night, *ways):
            if events in SHOWN:
                yield _line(events, "1 connection", peer, alone, limit, 1.2)
                yield _line(events, "8 connections", peer, together, limit, 2.2)


def _batch(server: PostgresqlServer, night: Night) -> Iterator[Result]:
    server.create_database("naive_batch")
    early = 0.0
    with (
        closing(Copied(server.dsn("naive_batch"), BATCH)) as naive,
        running_api(server.create_database("batch")) as api,
    ):
        ways = api.send_batches, naive.write
        for events, (ours, limit) in night_after_night(night, *ways):
            if events in SHOWN:
                way = f"batches of {BATCH}"
                yield _line(events, way, "COPY and upsert", ours, limit, 1.0)
            if events == FEW:
                early = api.resident_mb
        grown = api.resident_mb / early
        note = f"{api.resident_mb:.0f} MB after {events:,} events, {early:.0f} MB after {FEW:,}"
    yield Result("ingest, memory after 100,000 events / after 12,000", grown, 1.2, note=note)


def _line(events: int, way: str, peer: str, ours: float, limit: float, target: float) -> Result:
    return Result(
        f"ingest of {events:,} events, {way} / {peer}",
        ours / limit,
        target,
        better="higher",
        note=f"{ours:.0f} against {limit:.0f} events/s",
    )


def _warm(server: PostgresqlServer, night: Night) -> Iterator[Result]:
    """Measure two catalogs in turns, one of which already has a million events."""
    with running_api(server.create_database("few")) as few:
        for day in range(3):
            few.send_batches(list(night.bodies(first_day=day)))
        with running_api(server.create_database("many")) as many:
            for day in range(3):
                many.send_batches(list(night.bodies(first_day=day)))
            _multiply(server.dsn("many"), 1_000_000)
            # After the nights that both have, and not ahead of today: the API refuses the future.
            nights = [body for day in (3, 4, 5) for body in night.bodies(first_day=day)]
            # A first event makes the partition of its day before the clock starts. PostgreSQL
            # then reads the default partition, which only the copies of this benchmark fill.
            for api in (few, many):
                api.send_batches([next(night.bodies(first_day=day)) for day in (3, 4, 5)])
            large, small = in_turn(nights, many.send_batches, few.send_batches)
    rates = [len(nights) / seconds for seconds in (large, small)]
    note = f"{rates[0]:.0f} against {rates[1]:.0f} events/s"
    yield Result("ingest, warm at 1,000,000 stored events / at 12,000", small / large, 0.8,
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
    """Copy the rows of one night as if many more nights had been stored."""
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
            ours, limit = in_turn(bodies, partial(api.send, connections=8), naive.write)
    rates = [len(bodies) / seconds for seconds in (ours, limit)]
    note = f"{rates[0]:.0f} against {rates[1]:.0f} events/s"
    yield Result("ingest, SQLite, 8 connections / sqlite3, 8 events a commit", limit / ours, 0.5,
                 better="higher", note=note)  # fmt: skip
