"""Merge rows on PostgreSQL: one array per column, one statement text whatever the row count."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

from psycopg import RawCursor
from psycopg.errors import InFailedSqlTransaction
from psycopg.pq import TransactionStatus
from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.base import PGDialect

from floe.catalog.stores.merging.arrays import WRITERS, Writer
from floe.catalog.stores.merging.bundle import Bundle, Part
from floe.catalog.stores.merging.rules import Answer, Assign, Fetched, Lookup, Merge, Row
from floe.catalog.tables import Table

# It returns something, because a question whose answer nobody reads is never asked.
LOCK_LOG = Part(
    "SELECT last_position FROM change_head WHERE head_id = 1 FOR UPDATE",
    "",
    ("last_position",),
    (True,),
)


class PostgresqlMerging:
    """Writes rows whose values are as psycopg takes them, several tables in one statement."""

    def __init__(self) -> None:
        self._bundle: Bundle | None = None

    def moment(self, value: datetime) -> datetime:
        return value

    def day(self, value: date) -> date:
        return value

    def as_moment(self, value: str) -> datetime:
        return datetime.fromisoformat(value).astimezone(UTC)

    def as_day(self, value: str) -> date:
        return date.fromisoformat(value)

    @contextmanager
    def together(self, connection: Connection) -> Iterator[None]:
        driver = _driver(connection)
        begun = driver.info.transaction_status != TransactionStatus.IDLE
        with driver.pipeline() if begun else _own_transaction(driver):
            bundle = self._bundle = Bundle(driver)
            try:
                yield
                bundle.send()
            finally:
                self._bundle = None

    def merge(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> None:
        self.merge_returning(connection, merge, rows)

    def merge_returning(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> Answer:
        if not rows:
            return Fetched([])
        return self._add(_insert(merge), _write(_merge_writers(merge), rows), len(rows))

    def assign(
        self, connection: Connection, assign: Assign, rows: Sequence[tuple[int, Any]]
    ) -> None:
        if rows:
            self._add(_update(assign), _arrays(assign.table, (assign.number, assign.column), rows))

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> Answer:
        return self._add(
            _select(lookup),
            [
                write(list(given))
                for write, given in zip(_writers(lookup.table, lookup.by), values, strict=True)
            ],
        )

    def lock_log(self, connection: Connection) -> None:
        """End a statement with the lock: the next one sees what was committed when it began."""
        self._sent().add(LOCK_LOG, ())
        self._sent().send()

    def append_changes(
        self, connection: Connection, columns: tuple[str, ...], rows: Sequence[Row]
    ) -> None:
        if rows:
            arrays = _arrays("change", columns, rows)
            self._add(_append(columns), [len(rows), len(rows), *arrays])

    def _add(self, part: Part, values: Sequence[Any], rows: int = 1) -> Answer:
        return self._sent().add(part, values, rows)

    def _sent(self) -> Bundle:
        assert self._bundle is not None, "rows are written within together()"
        return self._bundle


@contextmanager
def _own_transaction(driver: Any) -> Iterator[None]:
    """Let BEGIN and COMMIT travel with the statements between them.

    The driver would send each by itself and wait for it.
    """
    driver.autocommit = True
    with driver.pipeline():
        RawCursor(driver).execute("BEGIN")
        yield
        ending = RawCursor(driver).execute("COMMIT")
    # A transaction that failed ends with ROLLBACK, and without an error.
    if ending.statusmessage != "COMMIT":
        raise InFailedSqlTransaction
    driver.autocommit = False


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection


def _arrays(table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> list[Any]:
    return _write(_writers(table, columns), rows)


def _write(writers: Sequence[Writer], rows: Sequence[Row]) -> list[Any]:
    return [write(values) for write, values in zip(writers, zip(*rows, strict=True), strict=True)]


@cache
def _writers(table: str, columns: tuple[str, ...]) -> tuple[Writer, ...]:
    return tuple(WRITERS.get(_element(table, name), list) for name in columns)


@cache
def _merge_writers(merge: Merge) -> tuple[Writer, ...]:
    if merge.through is None:
        return _writers(merge.table, merge.columns)
    first = _writers(merge.through.table, (merge.through.by,))
    return first + _writers(merge.table, merge.columns[1:])


@cache
def _insert(merge: Merge) -> Part:
    columns, through = ", ".join(merge.columns), merge.through
    if through is not None:
        given = ", ".join((through.by, *merge.columns[1:]))
        marks = ", ".join(
            (_marks(through.table, (through.by,)), _marks(merge.table, merge.columns[1:]))
        )
        rows = (
            f"unnest({marks}) AS given ({given}) "  # noqa: S608
            f"JOIN (SELECT {through.by}, {merge.columns[0]} FROM {through.table}) AS numbered "
            f"USING ({through.by})"
        )
    else:
        rows = f"unnest({_marks(merge.table, merge.columns)}) AS given ({columns})"
        if merge.unless is not None:
            rows += f" WHERE {merge.unless.condition({n: f'given.{n}' for n in merge.columns})}"
    return Part(
        f"INSERT INTO {merge.table} ({columns}) "  # noqa: S608
        f"SELECT {columns} FROM {rows}{merge.on_conflict()}",
        merge.table,
        merge.returning,
        _numbers(merge.table, merge.returning),
        reads=through.table if through else "",
    )


@cache
def _update(assign: Assign) -> Part:
    marks = _marks(assign.table, (assign.number, assign.column))
    sql = (
        f"UPDATE {assign.table} SET {assign.column} = given.value "  # noqa: S608
        f"FROM unnest({marks}) AS given (number, value) "
        f"WHERE {assign.table}.{assign.number} = given.number AND {assign.condition} "
        f"AND {assign.table}.{assign.column} IS DISTINCT FROM given.value"
    )
    return Part(sql, assign.table)


@cache
def _select(lookup: Lookup) -> Part:
    conditions = (f"{name} = ANY({_marks(lookup.table, (name,))})" for name in lookup.by)
    sql = (
        f"SELECT {', '.join(lookup.columns)} FROM {lookup.table} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)}"
    )
    numbers = _numbers(lookup.table, lookup.columns)
    return Part(sql, "", lookup.columns, numbers, reads=lookup.table)


@cache
def _append(columns: tuple[str, ...]) -> Part:
    """Take positions and write the rows under them, in one statement."""
    listed = ", ".join(columns)
    head = (
        "head AS (UPDATE change_head SET last_position = last_position + %s::int "
        "WHERE head_id = 1 RETURNING last_position), "
    )
    sql = (
        f"INSERT INTO change (change_position, {listed}) "  # noqa: S608
        f"SELECT head.last_position + place - %s::int, {listed} "
        f"FROM head, unnest({_marks('change', columns)}) WITH ORDINALITY "
        f"AS given ({listed}, place)"
    )
    return Part(sql, "change", before=head)


def _marks(table: str, columns: tuple[str, ...]) -> str:
    return ", ".join(f"%s::{_element(table, name)}[]" for name in columns)


def _numbers(table: str, columns: tuple[str, ...]) -> tuple[bool, ...]:
    return tuple(_element(table, name) in ("BIGINT", "INTEGER") for name in columns)


@cache
def _element(table: str, column: str) -> str:
    kind = Table.metadata.tables[table].c[column].type
    written = str(kind.compile(PGDialect()))  # type: ignore[no-untyped-call]
    # A cast to VARCHAR(n) cuts a longer string off; as TEXT it reaches the column and is refused.
    return "TEXT" if written.startswith(("VARCHAR", "CHAR")) else written
