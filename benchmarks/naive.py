"""The baseline: write the rows of events to a database directly, without floe.

Eight tables with the keys and indexes that a reader needs, no HTTP, no validation beyond JSON, no
foreign keys, no versions, no change log. On PostgreSQL one commit per event by pipelined multi-row
INSERTs, or COPY into staging tables and one upsert for each; on SQLite one commit for some events.
"""

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psycopg


class Shape(NamedTuple):
    """A table: its columns with their types, its key, and what an upsert changes."""

    columns: dict[str, str]
    key: tuple[str, ...] = ()
    change: str = ""


TABLES = {
    "event": Shape({"run": "text", "kind": "text", "at": "text", "job": "text", "body": "jsonb"}),
    "job": Shape({"id": "text", "name": "text", "last_run": "text"}, ("id",), "last_run"),
    "run": Shape({"id": "text", "job": "text", "state": "text", "at": "text"}, ("id",), "state"),
    "dataset": Shape({"id": "text", "name": "text", "version": "text"}, ("id",), "version"),
    "version": Shape({"id": "text", "dataset": "text", "run": "text", "schema": "text"}, ("id",)),
    "col": Shape(
        {"dataset": "text", "name": "text", "type": "text", "description": "text"},
        ("dataset", "name"),
    ),
    "io": Shape({"job": "text", "dataset": "text", "side": "text"}, ("job", "dataset", "side")),
    "col_edge": Shape(
        {"target": "text", "target_col": "text", "source": "text", "source_col": "text"},
        ("target", "target_col", "source", "source_col"),
    ),
}
INDEXES = (
    "event(run)",
    "event(at)",
    "run(job)",
    "version(dataset)",
    "io(dataset)",
    "col_edge(source)",
)
Rows = dict[str, list[tuple[Any, ...]]]


def rows_of(bodies: Sequence[bytes]) -> Rows:
    """Return the rows of some events; for a duplicate key the last one counts."""
    found: Rows = {table: [] for table in TABLES}
    for body in bodies:
        event = json.loads(body)
        run, job = event["run"]["runId"], event["job"]["namespace"] + "/" + event["job"]["name"]
        found["event"].append((run, event["eventType"], event["eventTime"], job, body.decode()))
        found["job"].append((job, event["job"]["name"], run))
        found["run"].append((run, job, event["eventType"], event["eventTime"]))
        for side in ("inputs", "outputs"):
            for dataset in event[side]:
                _dataset_rows(found, dataset, side, job, run)
    for table, shape in TABLES.items():
        if shape.key:
            size = len(shape.key)
            found[table] = list({row[:size]: row for row in found[table]}.values())
    return found


def _dataset_rows(found: Rows, dataset: dict[str, Any], side: str, job: str, run: str) -> None:
    name = dataset["namespace"] + "/" + dataset["name"]
    fields = dataset["facets"]["schema"]["fields"]
    digest = hashlib.md5(json.dumps(fields).encode()).hexdigest()
    version = f"{name}@{run if side == 'outputs' else digest}"
    found["dataset"].append((name, dataset["name"], version))
    found["version"].append((version, name, run, digest))
    found["col"] += [(name, one["name"], one["type"], one["description"]) for one in fields]
    found["io"].append((job, name, side))
    lineage = dataset["facets"].get("columnLineage", {"fields": {}})["fields"]
    for column, entry in lineage.items():
        for one in entry["inputFields"]:
            source = one["namespace"] + "/" + one["name"]
            found["col_edge"].append((name, column, source, one["field"]))


def _conflict(shape: Shape) -> str:
    if not shape.key:
        return ""
    action = f"UPDATE SET {shape.change} = excluded.{shape.change}" if shape.change else "NOTHING"
    return f" ON CONFLICT ({', '.join(shape.key)}) DO {action}"


def _create(table: str, shape: Shape, *, key: bool = True) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in shape.columns.items())
    primary = f", PRIMARY KEY ({', '.join(shape.key)})" if shape.key and key else ""
    return f"{table} ({columns}{primary})"


class Inserted:
    """PostgreSQL with one commit per event: all multi-row INSERTs in one round trip."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn)
        _prepare(self._connection)

    def write(self, bodies: Sequence[bytes]) -> None:
        with self._connection.pipeline() as pipeline:
            for body in bodies:
                for table, rows in rows_of([body]).items():
                    if rows:
                        self._insert(table, rows)
                self._connection.commit()
                # The sender gets its answer only after the event is on disk.
                pipeline.sync()

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        shape = TABLES[table]
        arrays = ", ".join(f"%s::{kind}[]" for kind in shape.columns.values())
        source = f"SELECT * FROM unnest({arrays})"
        self._connection.execute(
            f"INSERT INTO {table} {source}{_conflict(shape)}".encode(),
            [list(column) for column in zip(*rows, strict=True)],
            prepare=True,
        )

    def close(self) -> None:
        self._connection.close()


class Copied:
    """PostgreSQL by COPY into staging tables and one upsert each; one commit for some events."""

    def __init__(self, dsn: str, events: int) -> None:
        self._events = events
        self._connection = psycopg.connect(dsn)
        _prepare(self._connection)
        for table, shape in TABLES.items():
            stage = _create(f"stage_{table}", shape, key=False)
            self._connection.execute(f"CREATE TEMP TABLE {stage}".encode())
        self._connection.commit()

    def write(self, bodies: Sequence[bytes]) -> None:
        for start in range(0, len(bodies), self._events):
            _copy(self._connection, rows_of(bodies[start : start + self._events]))
            self._connection.commit()

    def close(self) -> None:
        self._connection.close()


def _copy(connection: psycopg.Connection[Any], found: Rows) -> None:
    cursor = connection.cursor()
    for table, rows in found.items():
        target = f"stage_{table}" if TABLES[table].key else table
        with cursor.copy(f"COPY {target} FROM STDIN".encode()) as copy:
            for row in rows:
                copy.write_row(row)
        if target != table:
            conflict = _conflict(TABLES[table])
            cursor.execute(f"INSERT INTO {table} SELECT * FROM {target}{conflict}".encode())
            cursor.execute(f"TRUNCATE {target}".encode())


def _prepare(connection: psycopg.Connection[Any]) -> None:
    for table, shape in TABLES.items():
        connection.execute(f"DROP TABLE IF EXISTS {table}".encode())
        connection.execute(f"CREATE TABLE {_create(table, shape)}".encode())
    for index in INDEXES:
        connection.execute(f"CREATE INDEX ON {index}".encode())
    connection.commit()


class InSqlite:
    """SQLite (WAL, every commit on disk), one commit for some events."""

    def __init__(self, path: Path, events: int) -> None:
        self._events = events
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        for table, shape in TABLES.items():
            self._connection.execute(f"CREATE TABLE {_create(table, shape)}")
        for place, index in enumerate(INDEXES):
            self._connection.execute(f"CREATE INDEX ix{place} ON {index}")

    def write(self, bodies: Sequence[bytes]) -> None:
        for start in range(0, len(bodies), self._events):
            self._connection.execute("BEGIN IMMEDIATE")
            for table, rows in rows_of(bodies[start : start + self._events]).items():
                marks = ", ".join("?" * len(TABLES[table].columns))
                conflict = _conflict(TABLES[table])
                statement = f"INSERT INTO {table} VALUES ({marks}){conflict}"
                self._connection.executemany(statement, rows)
            self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()
