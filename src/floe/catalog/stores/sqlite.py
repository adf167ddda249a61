"""SQLite, the embedded default: one file, WAL, every commit on disk."""

import sqlite3
import time
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime
from functools import cache, lru_cache
from typing import Any

import msgspec
from sqlalchemy import (
    URL,
    ColumnElement,
    Connection,
    Dialect,
    Engine,
    Subquery,
    Text,
    TypeDecorator,
    bindparam,
    event,
    func,
    literal,
    select,
    text,
)
from sqlalchemy import column as named
from sqlalchemy.orm import Session

from floe.catalog.stores.merging import Answer, Assign, Fetched, Lookup, Merge, Row
from floe.catalog.stores.store import (
    Fault,
    SearchDocument,
    bind_columns,
    in_key_order,
)
from floe.catalog.tables import Table

# How long a writer waits for another one before it fails.
BUSY_TIMEOUT_MS, WAL_RETRY_MS = 30_000, 10
# Out of memory, and everything that can happen to the file: locked, read-only, corrupt, full.
DATABASE_CODES = frozenset(
    {
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
# The low byte of an extended error code is the primary code.
PRIMARY_CODE = 0xFF
MAPPED_BYTES = 1 << 30
# Weight of a hit by field: name, tags, owner, columns, description. bm25 flattens differences, so
# only a huge weight ranks every hit in the name first.
WEIGHTS = (1_000_000.0, 5.0, 3.0, 2.0, 1.0)


class NumberList(TypeDecorator[Sequence[int]]):
    """A list of integers in one bound parameter, for json_each."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[int] | None, dialect: Dialect) -> str:
        # A list of integers looks the same in Python and in JSON.
        return str(list(value or ()))


# Shared, because SQLAlchemy inspects every new type object.
NUMBERS = NumberList()


class SqliteStore:
    """The catalog in a SQLite file."""

    name = "sqlite"
    search_key = "rowid"

    def engine_options(self, url: URL) -> dict[str, Any]:
        return {}

    def prepare_engine(self, engine: Engine) -> None:
        event.listen(engine, "connect", _set_pragmas)
        event.listen(engine, "begin", _begin)

    def fault_of(self, error: BaseException) -> Fault:
        # DataError: a text or blob that is too large.
        if isinstance(error, sqlite3.IntegrityError | sqlite3.DataError):
            return Fault.DATA
        code = getattr(error, "sqlite_errorcode", 0) & PRIMARY_CODE
        return Fault.DATABASE if code in DATABASE_CODES else Fault.UNKNOWN

    def lock_migrations(self, connection: Connection) -> None:
        """Nothing to do: a writer holds the whole file from its first statement."""

    def upsert(
        self,
        session: Session,
        table: type[Table],
        rows: Sequence[dict[str, Any]],
        key: Sequence[str],
        update: Sequence[str],
    ) -> None:
        session.flush()
        if not rows:
            return
        connection = session.connection()
        statement = _upsert_statement(table, tuple(rows[0]), tuple(key), tuple(update))
        bound = bind_columns(table, in_key_order(rows, key), connection.dialect)
        connection.exec_driver_sql(statement, list(zip(*bound.values(), strict=True)))

    def among(self, column: ColumnElement[int], values: Sequence[int] | str) -> ColumnElement[bool]:
        parameter = (
            bindparam(values, type_=NUMBERS)
            if isinstance(values, str)
            else literal(values, NUMBERS)
        )
        listed = func.json_each(parameter).table_valued("value")
        return column.in_(select(listed.c.value))

    def search_ddl(self) -> Sequence[str]:
        return (
            "CREATE VIRTUAL TABLE dataset_search USING fts5("
            "name, tags, owner, columns, description, prefix='2 3')",
        )

    def index_documents(self, session: Session, documents: Sequence[SearchDocument]) -> None:
        if not documents:
            return
        self.drop_documents(session, [document.dataset_id for document in documents])
        session.execute(
            text(
                "INSERT INTO dataset_search(rowid, name, tags, owner, columns, description) "
                "VALUES (:dataset_id, :name, :tags, :owner, :columns, :description)"
            ),
            [vars(document) for document in documents],
        )

    def drop_documents(self, session: Session, dataset_ids: Sequence[int]) -> None:
        ids = [{"id": dataset_id} for dataset_id in dataset_ids]
        session.execute(text("DELETE FROM dataset_search WHERE rowid = :id"), ids)

    def matches(self, words: Sequence[str]) -> Subquery:
        query = " ".join('"' + word.replace('"', '""') + '"' for word in words) + "*"
        weights = ", ".join(str(weight) for weight in WEIGHTS)
        statement = text(
            f"SELECT rowid AS dataset_id, bm25(dataset_search, {weights}) AS rank "  # noqa: S608
            "FROM dataset_search WHERE dataset_search MATCH :query"
        ).bindparams(query=query)
        return statement.columns(named("dataset_id"), named("rank")).subquery("matches")

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        """Nothing to prepare: SQLite keeps all days in one table."""

    def event_writers(self, session: Session) -> set[str]:
        return set()


@lru_cache(maxsize=256)
def _upsert_statement(
    table: type[Table], columns: tuple[str, ...], key: tuple[str, ...], update: tuple[str, ...]
) -> str:
    """Return the upsert of one row; without a network, row by row is fast."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in update)
    return (
        f"INSERT INTO {table.__tablename__} ({', '.join(columns)}) "  # noqa: S608
        f"VALUES ({', '.join('?' for _ in columns)}) "
        f"ON CONFLICT ({', '.join(key)}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
    )


def _set_pragmas(connection: Any, _record: object) -> None:
    # The driver must not open transactions itself: _begin chooses their kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    # First of all, because switching to WAL needs a lock that another connection may hold.
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _switch_to_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    # Walks over a large graph read many pages once; memory-mapped they are a third faster.
    cursor.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Switch a new file to WAL, which is a persistent setting.

    When several connections do so at once, SQLite fails all but one without honouring the busy
    timeout, so this retries.
    """
    for left in reversed(range(BUSY_TIMEOUT_MS // WAL_RETRY_MS)):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & PRIMARY_CODE != sqlite3.SQLITE_BUSY or not left:
                raise
            time.sleep(WAL_RETRY_MS / 1000)
        else:
            return


def _begin(connection: Connection) -> None:
    # A writer takes its lock at once: upgrading from a read lock later would fail with
    # "database is locked" whatever the busy timeout.
    writing = connection.get_execution_options().get("floe_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


TAKE_POSITIONS = (
    "UPDATE change_head SET last_position = last_position + ? WHERE head_id = 1 "
    "RETURNING last_position"
)


# 64 MB. While no events come in, the log is checkpointed whatever its size.
MAX_WAL_PAGES = 16_384
TIMESTAMP_LENGTH = len("2026-09-01 06:30:00.000000")


class SqliteMerging:
    """Merges rows with one prepared statement, run for each row."""

    def prepare(self, connection: Connection) -> None:
        """Let the WAL grow: frequent checkpoints would take a tenth of the time."""
        _cursor(connection).execute(f"PRAGMA wal_autocheckpoint = {MAX_WAL_PAGES}")

    def tidy(self, connection: Connection) -> None:
        _cursor(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def encode_time(self, value: datetime) -> str:
        """Format a time as SQLAlchemy stores it, so that both read the same."""
        # Without the zone, which is always UTC. Several times faster than strftime.
        return value.isoformat(" ", "microseconds")[:TIMESTAMP_LENGTH]

    def encode_date(self, value: date) -> str:
        return value.isoformat()

    def decode_time(self, value: str) -> datetime:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)

    def decode_date(self, value: str) -> date:
        return date.fromisoformat(value)

    def pipeline(self, connection: Connection) -> AbstractContextManager[object]:
        """Nothing to pipeline: SQLite runs in the same process."""
        return nullcontext()

    def start(self, connection: Connection) -> None:
        """Nothing to start: everything has run already."""

    def merge(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> None:
        _cursor(connection).executemany(_insert(merge), rows)

    def merge_returning(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> Answer:
        cursor, statement = _cursor(connection), _insert(merge)
        returned: list[Row] = []
        for row in rows:
            returned += cursor.execute(statement, row).fetchall()
        return Fetched(returned)

    def assign(
        self, connection: Connection, assign: Assign, rows: Sequence[tuple[int, Any]]
    ) -> None:
        values = [(value, row_id, value) for row_id, value in rows]
        _cursor(connection).executemany(_update(assign), values)

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: Answer,
    ) -> bool:
        """Return False: the result is there already, so nothing would be gained."""
        return False

    def reserve_ids(self, connection: Connection, table: str, column: str, count: int) -> Answer:
        # The writer has locked the whole file, so nobody else takes these ids.
        sql = f"SELECT coalesce(max({column}), 0) FROM {table}"  # noqa: S608
        (last,) = _cursor(connection).execute(sql).fetchone()
        return Fetched([(last + offset,) for offset in range(1, count + 1)])

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> Answer:
        lists = [msgspec.json.encode(list(column)).decode() for column in values]
        answer: Answer = _cursor(connection).execute(_select(lookup), lists)
        return answer

    def lock_log(self, connection: Connection) -> None:
        """Nothing to do: a writer holds the whole file from its first statement."""

    def append_changes(
        self, connection: Connection, columns: tuple[str, ...], rows: Sequence[Row]
    ) -> None:
        if not rows:
            return
        cursor = _cursor(connection)
        (last,) = cursor.execute(TAKE_POSITIONS, (len(rows),)).fetchone()
        first = last - len(rows) + 1
        cursor.executemany(
            _append(columns), [(first + offset, *row) for offset, row in enumerate(rows)]
        )


def _cursor(connection: Connection) -> Any:
    driver: Any = connection.connection.dbapi_connection
    return driver.cursor()


@cache
def _insert(merge: Merge) -> str:
    marks = ["?"] * len(merge.columns)
    if merge.through is not None:
        query = f"SELECT {merge.columns[0]} FROM {merge.through.table}"  # noqa: S608
        marks[0] = f"({query} WHERE {merge.through.by} = ?)"
    columns = ", ".join(merge.columns)
    if merge.unless is not None:
        parameters = {name: f"?{index}" for index, name in enumerate(merge.columns, 1)}
        return (
            f"INSERT INTO {merge.table} ({columns}) SELECT {', '.join(parameters.values())} "
            f"WHERE {merge.unless.condition(parameters)}{merge.on_conflict()}"
        )
    return f"INSERT INTO {merge.table} ({columns}) VALUES ({', '.join(marks)}){merge.on_conflict()}"  # noqa: S608


@cache
def _update(assign: Assign) -> str:
    return (
        f"UPDATE {assign.table} SET {assign.column} = ? "  # noqa: S608
        f"WHERE {assign.id_column} = ? AND {assign.condition} AND {assign.column} IS NOT ?"
    )


@cache
def _select(lookup: Lookup) -> str:
    listed = "IN (SELECT value FROM json_each(?))"
    conditions = (f"{name} {listed}" for name in lookup.by)
    return (
        f"SELECT {', '.join(lookup.columns)} FROM {lookup.table} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)}"
    )


@cache
def _append(columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" * (len(columns) + 1))
    return f"INSERT INTO change (change_position, {', '.join(columns)}) VALUES ({marks})"  # noqa: S608
