"""SQLite, the embedded default: one file, WAL, every commit on disk."""

import sqlite3
import time
from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import Any

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

from floe.catalog.stores.contract import SearchDocument
from floe.catalog.stores.faults import Fault
from floe.catalog.stores.rows import bind_columns, delete_event_days, in_key_order
from floe.catalog.tables import Table

# How long a writer waits for another before it gives up.
BUSY_TIMEOUT_MS, WAL_RETRY_MS = 30_000, 10
# No memory, and everything that can happen to the file: locked, read-only, damaged, full, gone.
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
# Of an error's code the part that says what it is; the rest says why.
PRIMARY_CODE = 0xFF
MAPPED_BYTES = 1 << 30
# How much a hit in each field weighs: name, tags, owner, columns, description. bm25 flattens
# differences, so that only a huge weight keeps every hit in the name before all others.
WEIGHTS = (1_000_000.0, 5.0, 3.0, 2.0, 1.0)


class NumberList(TypeDecorator[Sequence[int]]):
    """Many numbers in one bound parameter, for json_each."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[int] | None, dialect: Dialect) -> str:
        # A list of whole numbers looks the same in Python and in JSON.
        return str(list(value or ()))


# One for all: SQLAlchemy examines each type that it has not seen before.
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
        # DataError is a text or blob that is too large.
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
        given = (
            bindparam(values, type_=NUMBERS)
            if isinstance(values, str)
            else literal(values, NUMBERS)
        )
        listed = func.json_each(given).table_valued("value")
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
        found = text(
            f"SELECT rowid AS dataset_id, bm25(dataset_search, {weights}) AS rank "  # noqa: S608
            "FROM dataset_search WHERE dataset_search MATCH :query"
        ).bindparams(query=query)
        return found.columns(named("dataset_id"), named("rank")).subquery("matches")

    def prepare_event_days(self, session: Session, first: date, last: date) -> None:
        """Nothing to prepare: SQLite keeps all days in one table."""

    def drop_event_days(self, session: Session, before: date) -> int:
        return delete_event_days(session, before)


@lru_cache(maxsize=256)
def _upsert_statement(
    table: type[Table], columns: tuple[str, ...], key: tuple[str, ...], update: tuple[str, ...]
) -> str:
    """Write the upsert of one row: without a network, row by row is fast."""
    changed = ", ".join(f"{name} = excluded.{name}" for name in update)
    return (
        f"INSERT INTO {table.__tablename__} ({', '.join(columns)}) "  # noqa: S608
        f"VALUES ({', '.join('?' for _ in columns)}) "
        f"ON CONFLICT ({', '.join(key)}) DO {f'UPDATE SET {changed}' if changed else 'NOTHING'}"
    )


def _set_pragmas(connection: Any, _record: object) -> None:
    # The driver must not open transactions by itself: _begin decides which kind it is.
    connection.isolation_level = None
    cursor = connection.cursor()
    # First of all, because switching to WAL already needs a lock that another may hold.
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    _switch_to_wal(cursor)
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    # Walks over a large graph read many pages once: mapped, they are a third faster.
    cursor.execute(f"PRAGMA mmap_size = {MAPPED_BYTES}")
    cursor.close()


def _switch_to_wal(cursor: Any) -> None:
    """Let a new file have a log, once in its life.

    Of several who do so at the same moment SQLite refuses all but one, without the wait that it
    was told of.
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
    # A writer takes its lock at once: one that upgrades from reading later would fail with
    # "database is locked" however long it is ready to wait.
    writing = connection.get_execution_options().get("floe_writing", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")
