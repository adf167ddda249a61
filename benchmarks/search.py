"""Search in 100,000 datasets, compared with the bare full-text query of the same store.

The bare query ranks all matches and returns the ids of the best twenty. floe also parses the
words, looks up the twenty datasets and their tags, and checks for a next page. Facets
are queried separately: they are compared with the bare query followed by the same counts in
bare SQL.
"""

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

from benchmarks.catalogs import (
    fill_postgresql,
    index_catalog,
    make_vocabulary,
    search_rows,
    sqlite_catalog,
)
from benchmarks.result import Result
from floe.catalog.database import Catalog, open_catalog
from floe.catalog.search import search_datasets
from floe.catalog.search_index import split_words
from tools.postgresql import PostgresqlServer

DATASETS = 100_000
PAGE = 20
ROUNDS = 5

SQLITE_MATCH = "SELECT rowid AS id FROM dataset_search WHERE dataset_search MATCH ?"
SQLITE_BEST = (
    "SELECT rowid, bm25(dataset_search, 10.0, 5.0, 3.0, 2.0, 1.0) AS rank FROM dataset_search "
    f"WHERE dataset_search MATCH ? ORDER BY rank LIMIT {PAGE}"
)
POSTGRESQL_MATCH = (
    "SELECT dataset_id AS id FROM dataset_search, to_tsquery('simple', %s) AS query "
    "WHERE document @@ query"
)
POSTGRESQL_BEST = (
    "SELECT dataset_id, ts_rank('{0.1, 0.2, 0.5, 1.0}', document, query) AS rank "
    "FROM dataset_search, to_tsquery('simple', %s) AS query "
    f"WHERE document @@ query ORDER BY rank DESC LIMIT {PAGE}"
)
FACETS = (
    "SELECT category, owner_team, default_format, status, count(*) FROM dataset "
    "JOIN ({match}) AS found ON found.id = dataset_id "
    "GROUP BY category, owner_team, default_format, status"
)
TAGS = (
    "SELECT tag, count(*) FROM dataset_tag JOIN ({match}) AS found ON found.id = dataset_id "
    "GROUP BY tag ORDER BY 2 DESC LIMIT 50"
)


@dataclass(frozen=True)
class Bare:
    """A bare connection, its statements, and its full-text query syntax."""

    connection: Any
    match: str
    best: str
    write: Callable[[Sequence[str]], str]

    def search(self, text: str) -> None:
        self._fetch(self.best, text)

    def search_and_count(self, text: str) -> None:
        for sql in (self.best, FACETS.format(match=self.match), TAGS.format(match=self.match)):
            self._fetch(sql, text)

    def _fetch(self, sql: str, text: str) -> None:
        self.connection.execute(sql, (self.write(split_words(text)),)).fetchall()


def run() -> Iterator[Result]:
    """SQLite, then PostgreSQL."""
    path = sqlite_catalog(f"search-{DATASETS}", partial(search_rows, DATASETS), index_catalog)
    with closing(sqlite3.connect(path)) as connection:
        bare = Bare(connection, SQLITE_MATCH, SQLITE_BEST, _fts5)
        yield from _measure("SQLite", open_catalog(f"sqlite:///{path}"), bare)
    with PostgresqlServer() as server:
        url = server.create_database("search")
        fill_postgresql(url, server.dsn("search"), search_rows(DATASETS), index_catalog)
        with psycopg.connect(server.dsn("search")) as connection:
            bare = Bare(connection, POSTGRESQL_MATCH, POSTGRESQL_BEST, _tsquery)
            yield from _measure("PostgreSQL", open_catalog(url), bare)


def _fts5(words: Sequence[str]) -> str:
    return " ".join(f'"{word}"' for word in words) + "*"


def _tsquery(words: Sequence[str]) -> str:
    return " & ".join(f"'{word}'" for word in words) + ":*"


def _questions() -> list[str]:
    """Queries from words in a sixth of the catalog to words in hardly any dataset."""
    words = make_vocabulary()
    rare, rarer = words[400], words[2000]
    return [
        "payments",
        "bronze",
        "cust",
        "gold customers",
        "risk limits",
        "credit exp",
        "customers orders tra",
        "ledger team",
        "sandbox.orders_pri",
        rare,
        rarer[:4],
        f"{words[100]} {words[50]}",
        f"{rare} {words[60]}",
        "silver.contracts_fees_0",
        "collateral deals",
    ]


def _measure(store: str, catalog: Catalog, bare: Bare) -> Iterator[Result]:
    with catalog.reading() as session:
        hits = [
            _ratio(partial(bare.search, text), partial(_ask, session, text, False))
            for text in _questions()
        ]
        counts = [
            _ratio(partial(bare.search_and_count, text), partial(_ask, session, text, True))
            for text in _questions()
        ]
    catalog.close()
    yield Result(
        f"search, {PAGE} best of {DATASETS:,} datasets, {store}, against bare full text",
        statistics.median(hits),
        3.0,
        note=f"without facets, {len(hits)} questions, {min(hits):.1f} to {max(hits):.1f}",
    )
    yield Result(
        f"search with facets, {store}, against bare full text and counts",
        statistics.median(counts),
        3.0,
        note=f"{min(counts):.1f} to {max(counts):.1f}",
    )


def _ask(session: Session, text: str, with_facets: bool) -> None:
    search_datasets(session, text, limit=PAGE, with_facets=with_facets)


def _ratio(bare: Callable[[], None], ours: Callable[[], None]) -> float:
    # One after the other in every round, so that other load affects both alike.
    rounds = [(_seconds(bare), _seconds(ours)) for _ in range(ROUNDS + 1)][1:]
    return statistics.median(b for _, b in rounds) / statistics.median(a for a, _ in rounds)


def _seconds(ask: Callable[[], None]) -> float:
    started = time.perf_counter()
    ask()
    return time.perf_counter() - started
