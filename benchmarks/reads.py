"""Reads over HTTP on PostgreSQL, compared with the bare SQL that fetches the same rows.

The catalog is filled through floe's event door with the events of a layered graph of jobs. Every
query goes to a running `floe api`, with a token, and to the bare driver in turn; the result
is the 95th percentile of each. Lineage is compared with the driver fetching the same rows level
by level and encoding the same answer.
"""

import json
import random
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import psycopg

from benchmarks.bare_reads import HUB_NUMBERS, Driver, Rows
from benchmarks.layered import fill, make_jobs
from benchmarks.result import Result
from floe.catalog.database import open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.principals import DATA_CONSUMER, create_token
from tools.postgresql import PostgresqlServer
from tools.running_api import RunningApi

# Other load distorts a round, but not the median of the rounds.
ROUNDS, QUESTIONS, WARM_UP = 7, 150, 40
WALKS = {3: 20, 10: 6}
# Rows per list: a page of the default size, and a larger one.
PAGES = (50, 100)


class Client:
    """A minimal HTTP client: one connection, one request at a time."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n"

    def get(self, path: str) -> bytes:
        self._socket.sendall(f"GET /api/v1{path} HTTP/1.1\r\n{self._head}".encode())
        head, _, body = self._receive_head().partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200"), head + body
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        parts = [body]
        left = length - len(body)
        while left:
            part = self._socket.recv(min(left, 1 << 20))
            assert part, "the server closed the connection"
            parts.append(part)
            left -= len(part)
        return b"".join(parts)

    def _receive_head(self) -> bytes:
        data = b""
        while b"\r\n\r\n" not in data:
            part = self._socket.recv(1 << 16)
            assert part, "the server closed the connection"
            data += part
        return data


def run() -> Iterator[Result]:
    """Fill a catalog, serve it, and query it."""
    jobs = make_jobs()
    with PostgresqlServer() as server:
        url = server.create_database("reads")
        catalog = open_catalog(url)
        upgrade_catalog(catalog)
        events = fill(catalog, jobs)
        with catalog.writing() as session:
            token = create_token(session, "bench", DATA_CONSUMER, actor="bench").text
        catalog.close()
        driver = Driver(server.dsn("reads"))
        driver.fetch("SELECT 1 FROM dataset LIMIT 1")
        _analyze(server.dsn("reads"))
        with tempfile.TemporaryDirectory() as folder, RunningApi(Path(folder), url) as api:
            client = Client(api.port, token)
            yield from _small_reads(client, driver, events)
            yield from _walks(client, driver)


def _analyze(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _small_reads(client: Client, driver: Driver, events: int) -> Iterator[Result]:
    chance = random.Random(3)
    datasets = [row[0] for row in driver.fetch("SELECT dataset_id FROM dataset")]
    processes = [row[0] for row in driver.fetch("SELECT process_id FROM process")]
    keys = [row[0] for row in driver.fetch("SELECT process_key FROM process ORDER BY 1 LIMIT 900")]
    names = [row[0] for row in driver.fetch("SELECT name FROM dataset ORDER BY 1 LIMIT 1500")]
    runs = driver.fetch("SELECT run_id, run_uuid FROM process_run ORDER BY run_id OFFSET 100")

    def ask(
        name: str, path: Callable[[Any], str], bare: Callable[[Any], Rows], given: Sequence[Any]
    ) -> Result:
        chosen = [chance.choice(given) for _ in range(QUESTIONS)]
        seen = _compare(lambda given: client.get(path(given)), bare, chosen)
        return Result(
            f"{name} over HTTP, p95 against bare SQL",
            seen.ratio,
            4.0,
            note=f"p95 {seen.ours * 1e3:.2f} ms against {seen.theirs * 1e3:.2f} ms, "
            f"{events:,} events",
        )

    yield ask("dataset", lambda i: f"/dataset/{i}", driver.dataset, datasets)
    yield ask("process", lambda i: f"/process/{i}", driver.process, processes)
    yield ask("run", lambda u: f"/run/{u}", driver.run, [str(row[1]) for row in runs])
    for rows in PAGES:
        numbers = [row[0] for row in runs]
        yield ask(f"{rows} runs", _page("/runs", rows), _bare(driver.runs, rows), numbers)
        yield ask(
            f"{rows} processes", _page("/processes", rows), _bare(driver.processes, rows), keys
        )
        yield ask(f"{rows} datasets", _page("/datasets", rows), _bare(driver.datasets, rows), names)


def _bare(fetch: Callable[[Any, int], Rows], rows: int) -> Callable[[Any], Rows]:
    """Fetch a list with the bare driver, with as many rows as a page."""
    return lambda place: fetch(place, rows)


def _page(path: str, rows: int) -> Callable[[Any], str]:
    """Fetch a list from a position. Datasets are sorted by name and id."""

    def ask(place: Any) -> str:
        after = [place, 0] if path == "/datasets" else place
        return f"{path}?limit={rows}&cursor={_cursor(after)}"

    return ask


def _walks(client: Client, driver: Driver) -> Iterator[Result]:
    hubs = [row[0] for row in driver.fetch(HUB_NUMBERS)]
    chance = random.Random(5)
    for depth, walks in WALKS.items():
        chosen = [chance.choice(hubs) for _ in range(walks)]
        path = f"/dataset/{{}}/lineage?depth={depth}".format
        sizes = [_equal_nodes(client.get(path(hub)), driver.walk(hub, depth)) for hub in chosen]
        seen = _compare(
            lambda hub, path=path: client.get(path(hub)),  # type: ignore[misc]
            lambda hub, depth=depth: driver.walk(hub, depth),  # type: ignore[misc]
            chosen,
        )
        yield Result(
            f"lineage of depth {depth} over HTTP, p95 against fetching and encoding",
            seen.ratio,
            2.0,
            note=f"{statistics.median(sizes):,.0f} nodes, "
            f"{seen.ours * 1e3:.1f} ms against {seen.theirs * 1e3:.1f} ms",
        )


def _equal_nodes(ours: bytes, theirs: bytes) -> int:
    """Return the number of nodes of both answers, which must be equal to be comparable."""
    nodes, bare_nodes = (len(json.loads(answer)["nodes"]) for answer in (ours, theirs))
    assert nodes == bare_nodes, f"floe found {nodes} nodes, the bare driver {bare_nodes}"
    return nodes


@dataclass(frozen=True)
class Seen:
    """Return the 95th percentile of both, as the median of the rounds."""

    ratio: float
    ours: float
    theirs: float


def _compare(
    ours: Callable[[Any], Any], theirs: Callable[[Any], Any], given: Sequence[Any]
) -> Seen:
    """Query both in turn, round by round."""
    for question in given[:WARM_UP]:
        ours(question)
        theirs(question)
    rounds = []
    for _ in range(ROUNDS):
        pairs = [(_seconds(ours, question), _seconds(theirs, question)) for question in given]
        first, second = zip(*pairs, strict=True)
        rounds.append((_p95(first), _p95(second)))
    return Seen(
        statistics.median(floe / bare for floe, bare in rounds),
        statistics.median(seconds for seconds, _ in rounds),
        statistics.median(seconds for _, seconds in rounds),
    )


def _seconds(ask: Callable[[Any], Any], given: Any) -> float:
    started = time.perf_counter()
    ask(given)
    return time.perf_counter() - started


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[int(len(values) * 0.95)]


def _cursor(place: Any) -> str:
    import base64

    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")
