"""Reads over HTTP, against the bare SQL that fetches the same rows, on PostgreSQL.

The catalog is filled by floe's own door with the events of a layered graph of jobs. Every
question is put to a running `floe api`, with a token, and to the bare driver in turn; what counts
is the 95th percentile of each. Lineage is compared with the driver fetching the same rows level
by level and encoding the same answer.
"""

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import psycopg

from benchmarks.result import Result
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.migrate import upgrade_catalog
from floe.catalog.principals import DATA_CONSUMER, create_token
from floe.events.ingest import EventDoor, read_claim
from tools.postgresql import PostgresqlServer

LAYERS, WIDTH, COLUMNS, RUNS = 10, 250, 10, 3
# Reference data that a part of the first layer reads each, and how far from its own place a job
# looks for its inputs: so that five edges reach some 600 nodes and twenty almost all.
HUBS, NEAR = 4, 100
# A neighbour's burst of work spoils a round, not the median of them.
ROUNDS, QUESTIONS, WARM_UP = 7, 150, 40
WALKS = {5: 20, 20: 6}
# How many rows a list has: a page of the default size, and a larger one.
PAGES = (50, 100)
START = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "postgres://bench:5432"
GROUP = 200

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Job:
    """A job that reads two datasets and writes one or two."""

    name: str
    inputs: tuple[str, str]
    outputs: tuple[str, ...]


def make_jobs(seed: int = 7) -> list[Job]:
    """Layers of jobs that read from up to three layers before them, near their own place."""
    chance, jobs = random.Random(seed), []
    levels: list[list[list[str]]] = [
        [[f"raw.t{place:03d}_{n}" for n in range(2)] for place in range(WIDTH)]
    ]
    for layer in range(1, LAYERS + 1):
        level: list[list[str]] = []
        for place in range(WIDTH):

            def pick(from_level: list[list[str]], at: int = place) -> str:
                near = from_level[(at + chance.randint(-NEAR, NEAR)) % WIDTH]
                return chance.choice(near)

            first = pick(levels[-1]) if layer > 1 else f"ref.hub{place * HUBS // WIDTH}"
            second = first
            while second == first:
                second = pick(levels[-chance.randint(1, min(3, len(levels)))])
            outputs = [f"l{layer:02d}.t{place:03d}_{n}" for n in range(1 + (chance.random() < 0.4))]
            level.append(outputs)
            jobs.append(Job(f"etl.l{layer:02d}.j{place:03d}", (first, second), tuple(outputs)))
        levels.append(level)
    return jobs


def make_events(jobs: Sequence[Job]) -> Iterator[bytes]:
    """A START and a COMPLETE for every run of every job."""
    for day in range(RUNS):
        for number, job in enumerate(jobs):
            run_id = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{job.name}/{day}"))
            started = START + timedelta(days=day, seconds=number)
            for kind, at in (("START", started), ("COMPLETE", started + timedelta(seconds=1))):
                yield msgspec.json.encode(_event(job, kind, at, run_id))


def _event(job: Job, kind: str, at: datetime, run_id: str) -> dict[str, Any]:
    nominal = {"nominalStartTime": at.replace(hour=0, minute=0, second=0).isoformat()}
    return {
        "eventType": kind,
        "eventTime": at.isoformat(),
        "producer": "urn:bench",
        "run": {"runId": run_id, "facets": {"nominalTime": nominal}},
        "job": {
            "namespace": "bench",
            "name": job.name,
            "facets": {"jobType": {"integration": "BENCH"}},
        },
        "inputs": [_dataset(name) for name in job.inputs],
        "outputs": [_dataset(name, job if kind == "COMPLETE" else None) for name in job.outputs],
    }


def _dataset(name: str, made_by: Job | None = None) -> dict[str, Any]:
    fields = [{"name": f"c{n:02d}", "type": "BIGINT"} for n in range(COLUMNS)]
    facets: dict[str, Any] = {"schema": {"fields": [*fields, {"name": name, "type": "VARCHAR"}]}}
    part = {"namespace": NAMESPACE, "name": name, "facets": facets}
    if made_by is not None:
        facets["columnLineage"] = {
            "fields": {
                f"c{n:02d}": {
                    "inputFields": [
                        {
                            "namespace": NAMESPACE,
                            "name": made_by.inputs[n % 2],
                            "field": f"c{n:02d}",
                        }
                    ]
                }
                for n in range(COLUMNS)
            }
        }
        part["outputFacets"] = {"outputStatistics": {"rowCount": 1000, "size": 100_000}}
    return part


def fill(catalog: Catalog, jobs: Sequence[Job]) -> int:
    """Send all events through the door; return how many there were."""
    door, count, group = EventDoor(catalog), 0, []
    for body in make_events(jobs):
        group.append(read_claim(body))
        count += 1
        if len(group) == GROUP:
            assert not door.submit(group).result()
            group = []
    if group:
        assert not door.submit(group).result()
    door.close()
    return count


class Client:
    """As little HTTP as possible: one connection, one request at a time."""

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


DATASET = (
    "SELECT d.*, (SELECT schema_hash FROM schema_sighting s WHERE s.dataset_id = d.dataset_id "
    "ORDER BY last_seen DESC LIMIT 1) FROM dataset d WHERE dataset_id = %s"
)
TAGS = "SELECT tag FROM dataset_tag WHERE dataset_id = %s ORDER BY tag"
COLUMNS_OF = "SELECT * FROM dataset_schema WHERE schema_hash = %s ORDER BY column_order"
VERSIONS = (
    "SELECT * FROM dataset_version WHERE dataset_id = %s ORDER BY dataset_version_id DESC LIMIT 5"
)
NEIGHBOURS = " UNION ALL ".join(
    f"SELECT e.edge_role, p.process_id, p.process_key, p.name, p.team FROM lineage_edge e "
    f"JOIN process p ON p.process_id = e.{far}_id "
    f"WHERE e.{near}_type = 'DATASET' AND e.{near}_id = %s AND e.edge_role = '{role}' "
    f"AND e.ended_at IS NULL"
    for near, far, role in (("target", "source", "PRODUCES"), ("source", "target", "CONSUMES"))
)
PROCESS = "SELECT * FROM process WHERE process_id = %s"
CONTRACT = " UNION ALL ".join(
    f"SELECT DISTINCT e.edge_role, d.full_name FROM lineage_edge e "
    f"JOIN dataset d ON d.dataset_id = e.{far}_id "
    f"WHERE e.{near}_type = 'PROCESS' AND e.{near}_id = %s AND e.edge_role = '{role}' "
    f"AND e.ended_at IS NULL"
    for near, far, role in (("target", "source", "CONSUMES"), ("source", "target", "PRODUCES"))
)
RUN_COLUMNS = (
    "r.run_id, r.run_uuid, r.process_id, p.process_key, r.business_date, r.partition_key, "
    "r.start_ts, r.end_ts, r.status, r.attempt, r.parent_run_uuid, r.historical"
)
RUNS_OF = (
    f"SELECT {RUN_COLUMNS} FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.process_id = %s ORDER BY r.run_id DESC LIMIT 10"
)
RUN = (
    "SELECT r.*, p.process_key, p.name FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.run_uuid = %s"
)
INPUTS = (
    "SELECT i.*, d.full_name, v.business_date, v.state FROM run_input i "
    "JOIN dataset d USING (dataset_id) "
    "LEFT JOIN dataset_version v ON v.dataset_version_id = i.dataset_version_id "
    "WHERE i.run_id = %s ORDER BY d.full_name"
)
OUTPUTS = (
    "SELECT v.*, d.full_name FROM dataset_version v JOIN dataset d USING (dataset_id) "
    "WHERE v.produced_by_run_id = %s ORDER BY d.full_name"
)
STEPS = "SELECT * FROM run_step WHERE run_id = %s ORDER BY step_order"
RUN_LIST = (
    f"SELECT {RUN_COLUMNS} FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.run_id < %s ORDER BY r.run_id DESC"
)
PROCESS_LIST = (
    "SELECT process_id, process_key, name, description, technology, team, owner_email, "
    "trigger_mode, status FROM process WHERE process_key > %s ORDER BY process_key"
)
DATASET_LIST = (
    "SELECT dataset_id, name, full_name, description, category, default_format, owner_team, "
    "owner_email, status FROM dataset WHERE (name, dataset_id) > (%s, 0) "
    "ORDER BY name, dataset_id"
)
TAG_LIST = "SELECT dataset_id, tag FROM dataset_tag WHERE dataset_id = ANY(%s)"
HUB_NUMBERS = "SELECT dataset_id FROM dataset WHERE name LIKE 'ref.%%'"
EDGES = (
    "SELECT source_id, target_type, target_id, edge_role, known_by FROM lineage_edge "
    "WHERE source_type = %s AND source_id = ANY(%s) AND ended_at IS NULL"
)
NODES = {
    "DATASET": "SELECT dataset_id, name, full_name, status, owner_team, default_format "
    "FROM dataset WHERE dataset_id = ANY(%s)",
    "PROCESS": "SELECT process_id, name, process_key, status, team, technology "
    "FROM process WHERE process_id = ANY(%s)",
}


class Driver:
    """A bare connection that fetches what an answer is made of."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.prepare_threshold = 1

    def fetch(self, sql: str, *values: Any) -> Rows:
        return self._connection.execute(sql.encode(), values).fetchall()

    def dataset(self, number: int) -> Rows:
        found = self.fetch(DATASET, number)
        self.fetch(TAGS, number)
        self.fetch(COLUMNS_OF, found[0][-1])
        self.fetch(VERSIONS, number)
        self.fetch(NEIGHBOURS, number, number)
        return found

    def process(self, number: int) -> Rows:
        found = self.fetch(PROCESS, number)
        self.fetch(CONTRACT, number, number)
        self.fetch(RUNS_OF, number)
        return found

    def run(self, run_uuid: str) -> Rows:
        found = self.fetch(RUN, run_uuid)
        self.fetch(INPUTS, found[0][0])
        self.fetch(OUTPUTS, run_uuid)
        self.fetch(STEPS, found[0][0])
        return found

    def runs(self, before: int, rows: int) -> Rows:
        return self.fetch(f"{RUN_LIST} LIMIT {rows + 1}", before)

    def processes(self, after: str, rows: int) -> Rows:
        return self.fetch(f"{PROCESS_LIST} LIMIT {rows + 1}", after)

    def datasets(self, after: str, rows: int) -> Rows:
        found = self.fetch(f"{DATASET_LIST} LIMIT {rows + 1}", after)
        self.fetch(TAG_LIST, [row[0] for row in found])
        return found

    def walk(self, number: int, depth: int) -> bytes:
        """Fetch the graph below a dataset level by level, and encode it."""
        seen, frontier = {("DATASET", number): 0}, {"DATASET": [number]}
        edges = []
        for level in range(1, depth + 1):
            found: dict[str, list[int]] = {}
            for kind, ids in frontier.items():
                for near, far_type, far, role, known_by in self.fetch(EDGES, kind, ids):
                    edges.append((kind, near, far_type, far, role, known_by))
                    if (far_type, far) not in seen:
                        seen[far_type, far] = level
                        found.setdefault(far_type, []).append(far)
            frontier = found
        nodes = [
            {
                "type": kind,
                "id": row[0],
                "name": row[1],
                "key": row[2],
                "status": row[3],
                "team": row[4],
                "technology": row[5],
                "depth": seen[kind, row[0]],
            }
            for kind, sql in NODES.items()
            for row in self.fetch(sql, [one for of, one in seen if of == kind])
        ]
        listed = [
            {
                "source_type": kind,
                "source_id": near,
                "target_type": far_type,
                "target_id": far,
                "role": role,
                "known_by": [known_by],
                "via": None,
            }
            for kind, near, far_type, far, role, known_by in edges
        ]
        return msgspec.json.encode({"nodes": nodes, "edges": listed, "truncated": False})


def run() -> Iterator[Result]:
    """Fill a catalog, serve it, and ask."""
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
        with _api(url) as port:
            client = Client(port, token)
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
        seen = _compare(lambda one: client.get(path(one)), bare, chosen)
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
    """A list by the bare driver, of as many rows as a page has."""
    return lambda place: fetch(place, rows)


def _page(path: str, rows: int) -> Callable[[Any], str]:
    """A list from a place on. Datasets are listed by name and number."""

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
        nodes = len(json.loads(client.get(path(chosen[0])))["nodes"])
        seen = _compare(
            lambda one, path=path: client.get(path(one)),  # type: ignore[misc]
            lambda one, depth=depth: driver.walk(one, depth),  # type: ignore[misc]
            chosen,
        )
        yield Result(
            f"lineage of depth {depth} over HTTP, p95 against fetching and encoding",
            seen.ratio,
            2.0,
            note=f"{nodes:,} nodes, {seen.ours * 1e3:.1f} ms against {seen.theirs * 1e3:.1f} ms",
        )


@dataclass(frozen=True)
class Seen:
    """The 95th percentile of both, in the median of the rounds."""

    ratio: float
    ours: float
    theirs: float


def _compare(
    ours: Callable[[Any], Any], theirs: Callable[[Any], Any], given: Sequence[Any]
) -> Seen:
    """Ask both in turn, round by round."""
    for one in given[:WARM_UP]:
        ours(one)
        theirs(one)
    rounds = []
    for _ in range(ROUNDS):
        pairs = [(_seconds(ours, one), _seconds(theirs, one)) for one in given]
        first, second = zip(*pairs, strict=True)
        rounds.append((_p95(first), _p95(second)))
    return Seen(
        statistics.median(one / other for one, other in rounds),
        statistics.median(one for one, _ in rounds),
        statistics.median(other for _, other in rounds),
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


@contextmanager
def _api(url: str) -> Iterator[int]:
    """A running `floe api` on the catalog; gives its port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [sys.executable, "-c", "from floe.cli import main; main()"]
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [*command, "api", "--port", str(port)],
            cwd=folder,
            env={**os.environ, "FLOE_CATALOG_URL": url},
            stdout=subprocess.DEVNULL,
        ) as server,
    ):
        try:
            _wait(port)
            yield port
        finally:
            server.terminate()
            server.wait(30)


def _wait(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError("floe api did not start")
