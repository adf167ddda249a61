"""Lineage: five levels downstream, compared with the bare driver fetching the same rows.

The driver reads the edges of each level with one statement and, at the end, the rows of all
datasets and processes with one statement each: the minimum for any client. The same
queries run on a catalog of 100,000 edges and to one of 1,000,000 that contains it.
"""

import random
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from sqlalchemy.orm import Session

from benchmarks.catalogs import fill_postgresql, graph_rows, make_domain, sqlite_catalog
from benchmarks.result import Result
from floe.catalog.database import open_catalog
from floe.catalog.drift import page_drift
from floe.catalog.edges import DATASET, Node
from floe.catalog.lineage import walk_lineage
from floe.catalog.search_index import suggest_datasets
from tools.postgresql import PostgresqlServer

SMALL, BIG = 100_000, 1_000_000
DEPTH = 3
# Domains that both catalogs have.
DOMAINS = 8
QUESTIONS, ROUNDS = 40, 9

EDGES = (
    "SELECT source_id, target_type, target_id, edge_role, known_by FROM lineage_edge "
    "WHERE source_type = {slot} AND source_id {among} AND ended_at IS NULL"
)
NODES = {
    "DATASET": "SELECT dataset_id, name, full_name, status, owner_team, default_format "
    "FROM dataset WHERE dataset_id {among}",
    "PROCESS": "SELECT process_id, name, process_key, status, team, technology "
    "FROM process WHERE process_id {among}",
}


@dataclass(frozen=True)
class Driver:
    """A bare connection, and how its database takes a list of ids."""

    connection: Any
    slot: str
    among: str
    encode: Callable[[Sequence[int]], Any]

    def fetch(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self.connection.execute(sql, values).fetchall()
        return rows

    def walk(self, start: Node) -> int:
        """Fetch the rows of a walk; return the number of nodes."""
        edges = EDGES.format(slot=self.slot, among=self.among)
        seen, frontier = {tuple(start)}, {start.type: [start.id]}
        # A step goes through a process to the next dataset; a last query finds nodes with more.
        for _ in range(2 * DEPTH):
            found: dict[str, list[int]] = {}
            for kind, ids in frontier.items():
                for row in self.fetch(edges, kind, self.encode(ids)):
                    if row[1:3] not in seen:
                        seen.add(row[1:3])
                        found.setdefault(row[1], []).append(row[2])
            frontier = found
        for kind, ids in frontier.items():
            self.fetch(edges, kind, self.encode(ids))
        return sum(len(self._describe(kind, seen)) for kind in NODES)

    def _describe(self, kind: str, seen: set[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        ids = self.encode([number for one, number in seen if one == kind])
        return self.fetch(NODES[kind].format(among=self.among), ids)

    def number(self, name: str) -> Node:
        """Return the id of a dataset by name."""
        sql = f"SELECT dataset_id FROM dataset WHERE name = {self.slot}"
        return Node(DATASET, self.fetch(sql, name)[0][0])


def run() -> Iterator[Result]:
    """SQLite, then PostgreSQL."""
    yield from _run_sqlite()
    yield from _run_postgresql()


def _run_sqlite() -> Iterator[Result]:
    small, big = (sqlite_catalog(f"lineage-{n}", partial(graph_rows, n)) for n in (SMALL, BIG))

    def driver(connection: sqlite3.Connection) -> Driver:
        return Driver(
            connection, "?", "IN (SELECT value FROM json_each(?))", lambda i: str(list(i))
        )

    with closing(sqlite3.connect(small)) as one, closing(sqlite3.connect(big)) as other:
        urls = (f"sqlite:///{small}", f"sqlite:///{big}")
        yield from _measure("SQLite", urls, (driver(one), driver(other)))


def _run_postgresql() -> Iterator[Result]:
    def driver(connection: psycopg.Connection) -> Driver:
        return Driver(connection, "%s", "= ANY(%s)", list)

    with PostgresqlServer() as server:
        urls = (server.create_database("small"), server.create_database("big"))
        fill_postgresql(urls[0], server.dsn("small"), graph_rows(SMALL))
        fill_postgresql(urls[1], server.dsn("big"), graph_rows(BIG))
        with (
            psycopg.connect(server.dsn("small")) as one,
            psycopg.connect(server.dsn("big")) as other,
        ):
            yield from _measure("PostgreSQL", urls, (driver(one), driver(other)))


def _questions() -> list[str]:
    """Return datasets from the upper half of each domain, and one read by its whole domain."""
    chance = random.Random(1)
    domains = [make_domain(number).datasets for number in range(DOMAINS)]
    upper = [name for names in domains for name in names[: len(names) // 2]]
    return [names[0] for names in domains] + chance.sample(upper, QUESTIONS)


def _measure(store: str, urls: tuple[str, str], drivers: tuple[Driver, Driver]) -> Iterator[Result]:
    small, big = (open_catalog(url) for url in urls)
    with small.reading() as few, big.reading() as many:
        measured = [_compare(name, (few, many), drivers) for name in _questions()]
        growths = {what: _growth(ask, few, many) for what, ask in GROWING.items()}
    small.close()
    big.close()
    sizes = sorted(one.nodes for one in measured)
    note = (
        f"{len(sizes)} datasets of {sizes[0]} to {sizes[-1]} nodes, median {sizes[len(sizes) // 2]}"
    )
    yield Result(
        f"lineage, {DEPTH} levels of {BIG:,} edges, {store}, against the bare driver",
        statistics.median(one.big / one.bare for one in measured),
        2.0,
        note=note,
    )
    yield Result(
        f"lineage, the same answers at {BIG:,} against {SMALL:,} edges, {store}",
        statistics.median(one.big / one.small for one in measured),
        1.3,
    )
    for what, growth in growths.items():
        yield Result(f"{what} at {BIG:,} against {SMALL:,} edges, {store}", growth, 2.0)


@dataclass(frozen=True)
class Compared:
    """Return median seconds of a query: bare and floe in the big catalog, floe in the small one."""

    nodes: int
    bare: float
    big: float
    small: float


def _compare(
    name: str, sessions: tuple[Session, Session], drivers: tuple[Driver, Driver]
) -> Compared:
    few, many = (driver.number(name) for driver in drivers)
    asks: list[Callable[[], int]] = [
        lambda: drivers[1].walk(many),
        lambda: len(walk_lineage(sessions[1], many, depth=DEPTH).nodes),
        lambda: len(walk_lineage(sessions[0], few, depth=DEPTH).nodes),
    ]
    counts = {ask() for ask in asks}
    if len(counts) != 1:
        raise AssertionError(f"{name} has different answers: {counts}")
    # One after the other in every round, so that other load affects all of them alike.
    rounds = [[_seconds(ask) for ask in asks] for _ in range(ROUNDS)]
    bare, big, small = (statistics.median(column) for column in zip(*rounds, strict=True))
    return Compared(counts.pop(), bare, big, small)


GROWING: dict[str, Callable[[Session], int]] = {
    "a page of drift": lambda session: len(page_drift(session, 100)[0]),
    "near names of an unknown one": lambda session: len(
        suggest_datasets(session, "dom001.l02.t0040x")
    ),
}


def _growth(ask: Callable[[Session], int], few: Session, many: Session) -> float:
    """Return how many times longer a query takes in the big catalog."""
    rounds = [(_seconds(lambda: ask(few)), _seconds(lambda: ask(many))) for _ in range(ROUNDS)]
    small, big = (float(statistics.median(column)) for column in zip(*rounds, strict=True))
    return big / small


def _seconds(ask: Callable[[], int]) -> float:
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started
