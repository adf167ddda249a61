"""Merge rows on PostgreSQL: one array per column, whatever the row count."""

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.base import PGDialect

from floe.catalog.stores.merging import Answer, Assign, Fetched, Lookup, Merge, Row, Through
from floe.catalog.stores.postgresql_pipeline import (
    FEEDER,
    Bundle,
    Part,
    PendingAnswer,
    Pipeline,
    Value,
    fed_by,
)
from floe.catalog.tables import Table

Writer = Callable[[Sequence[Any]], str | bytes]
# It returns something, because PostgreSQL skips a WITH query that nobody reads.
LOCK_LOG = Part(
    "SELECT last_position FROM change_head WHERE head_id = 1 FOR UPDATE",
    "",
    ("last_position",),
    (True,),
)

# All queries here read a few rows by an index. The planner cannot know that: while a table is new
# it expects almost no rows, and would scan the whole table for each event.
PLANS = (
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    # Compiling a plan takes longer than running these.
    "jit = off",
)

# Prepared statements stay with their connection, whoever checks it out next.
_pipelines: WeakKeyDictionary[Any, Pipeline] = WeakKeyDictionary()


class PostgresqlMerging:
    """Merges rows into several tables with one statement, sent in a pipeline."""

    def __init__(self) -> None:
        self._bundle: Bundle | None = None

    def prepare(self, connection: Connection) -> None:
        for setting in PLANS:
            connection.exec_driver_sql(f"SET {setting}")
        connection.commit()

    def tidy(self, connection: Connection) -> None:
        """Nothing to do: the server maintains itself."""

    def encode_time(self, value: datetime) -> str:
        return value.isoformat()

    def encode_date(self, value: date) -> str:
        return value.isoformat()

    def decode_time(self, value: str) -> datetime:
        return datetime.fromisoformat(value).astimezone(UTC)

    def decode_date(self, value: str) -> date:
        return date.fromisoformat(value)

    @contextmanager
    def pipeline(self, connection: Connection) -> Iterator[None]:
        driver: Any = connection.connection.dbapi_connection
        pipeline = _pipeline_of(driver)
        pipeline.begin()
        try:
            bundle = self._bundle = Bundle(pipeline)
            yield
            bundle.send()
            bundle.fill_answers(pipeline.end())
        except BaseException:
            pipeline.abandon()
            raise
        finally:
            self._bundle = None

    def start(self, connection: Connection) -> None:
        self._active_bundle().start()

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
            columns = (assign.id_column, assign.column)
            self._add(_update(assign), _arrays(assign.table, columns, rows))

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: Answer,
    ) -> bool:
        if not self._active_bundle().may_refer(written, assign.table):
            return False
        assert isinstance(written, PendingAnswer)
        part = fed_by(_update(assign), written.index)
        self._add(part, _arrays(assign.table, (assign.id_column, assign.column), rows))
        return True

    def reserve_ids(self, connection: Connection, table: str, column: str, count: int) -> Answer:
        return self._add(_next_ids(table, column), [str(count)])

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> Answer:
        return self._add(
            _select(lookup),
            [
                write(list(column))
                for write, column in zip(_writers(lookup.table, lookup.by), values, strict=True)
            ],
        )

    def lock_log(self, connection: Connection) -> None:
        """End the statement with the lock: the next one sees all earlier commits."""
        self._active_bundle().add(LOCK_LOG, ())
        self._active_bundle().send()

    def append_changes(
        self, connection: Connection, columns: tuple[str, ...], rows: Sequence[Row]
    ) -> None:
        if rows:
            arrays = _arrays("change", columns, rows)
            self._add(_append(columns), [str(len(rows)), str(len(rows)), *arrays])

    def _add(self, part: Part, values: Sequence[Value], rows: int = 1) -> Answer:
        return self._active_bundle().add(part, values, rows)

    def _active_bundle(self) -> Bundle:
        assert self._bundle is not None, "merging only works inside pipeline()"
        return self._bundle


def _pipeline_of(driver: Any) -> Pipeline:
    pipeline = _pipelines.get(driver)
    if pipeline is None:
        pipeline = _pipelines[driver] = Pipeline(driver.pgconn)
    return pipeline


def _arrays(table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> list[Value]:
    return _write(_writers(table, columns), rows)


def _write(writers: Sequence[Writer], rows: Sequence[Row]) -> list[Value]:
    return [write(values) for write, values in zip(writers, zip(*rows, strict=True), strict=True)]


@cache
def _writers(table: str, columns: tuple[str, ...]) -> tuple[Writer, ...]:
    return tuple(WRITERS[_element(table, name)] for name in columns)


@cache
def _merge_writers(merge: Merge) -> tuple[Writer, ...]:
    if merge.through is None:
        return _writers(merge.table, merge.columns)
    first = _writers(merge.through.table, (merge.through.by,))
    return first + _writers(merge.table, merge.columns[1:])


@cache
def _insert(merge: Merge) -> Part:
    columns, through = ", ".join(merge.columns), merge.through
    into = f"INSERT INTO {merge.table} ({columns}) "
    ending = merge.on_conflict()
    fed_sql = ""
    if through is not None:
        rows, others = _given_through(merge, through), ", ".join(merge.columns[1:])
        looked_up = f"looked_up.{merge.columns[0]}"
        sql = f"{into}SELECT {looked_up}, {others} FROM {rows}{ending}"  # noqa: S608
        fed_sql = (
            f"{into}SELECT coalesce(fresh.{merge.columns[0]}, {looked_up}), {others} "  # noqa: S608
            f"FROM {rows.replace('JOIN', 'LEFT JOIN')} "
            f"LEFT JOIN {FEEDER} AS fresh USING ({through.by}){ending}"
        )
    else:
        rows = _given([(merge.table, name, name) for name in merge.columns])
        if merge.unless is not None:
            rows += f" WHERE {merge.unless.condition({n: f'given.{n}' for n in merge.columns})}"
        # The table generates ids itself, unless they were reserved before.
        own = "OVERRIDING SYSTEM VALUE " if merge.with_ids else ""
        sql = f"{into}{own}SELECT {columns} FROM {rows}{ending}"  # noqa: S608
    return Part(
        sql,
        merge.table,
        merge.returning,
        _are_ints(merge.table, merge.returning),
        reads=through.table if through else "",
        fed_sql=fed_sql,
    )


def _given_through(merge: Merge, through: Through) -> str:
    named = [(merge.table, name, name) for name in merge.columns[1:]]
    given = _given([(through.table, through.by, through.by), *named])
    return (
        f"{given} "  # noqa: S608
        f"JOIN (SELECT {through.by}, {merge.columns[0]} FROM {through.table}) AS looked_up "
        f"USING ({through.by})"
    )


@cache
def _update(assign: Assign) -> Part:
    given = _given(
        [(assign.table, assign.id_column, "row_id"), (assign.table, assign.column, "value")]
    )
    sql = (
        f"UPDATE {assign.table} SET {assign.column} = given.value "  # noqa: S608
        f"FROM {given} "
        f"WHERE {assign.table}.{assign.id_column} = given.row_id AND {assign.condition} "
        f"AND {assign.table}.{assign.column} IS DISTINCT FROM given.value"
    )
    return Part(sql, assign.table, fed_sql=f"{sql}{_among_written(assign)}")


def _among_written(assign: Assign) -> str:
    written = assign.written
    if written is None:
        return ""
    same = " AND ".join(f"{column} = '{value}'" for column, value in written.values)
    return (
        f" AND EXISTS (SELECT 1 FROM {FEEDER} "  # noqa: S608
        f"WHERE {FEEDER}.{written.by} = given.row_id AND {same})"
    )


@cache
def _next_ids(table: str, column: str) -> Part:
    sql = (
        f"SELECT nextval(pg_get_serial_sequence('{table}', '{column}')) AS id "  # noqa: S608
        "FROM generate_series(1, %s::int)"
    )
    return Part(sql, "", ("id",), (True,))


@cache
def _select(lookup: Lookup) -> Part:
    conditions = (f"{name} = ANY({_marks(lookup.table, (name,))})" for name in lookup.by)
    sql = (
        f"SELECT {', '.join(lookup.columns)} FROM {lookup.table} "  # noqa: S608
        f"WHERE {' AND '.join(conditions)}"
    )
    are_ints = _are_ints(lookup.table, lookup.columns)
    return Part(sql, "", lookup.columns, are_ints, reads=lookup.table)


@cache
def _append(columns: tuple[str, ...]) -> Part:
    """Return a part that reserves positions and writes the rows at them."""
    listed = ", ".join(columns)
    head = (
        "head AS (UPDATE change_head SET last_position = last_position + %s::int "
        "WHERE head_id = 1 RETURNING last_position), "
    )
    sql = (
        f"INSERT INTO change (change_position, {listed}) "  # noqa: S608
        f"SELECT head.last_position + ordinal - %s::int, {listed} "
        f"FROM head, unnest({_marks('change', columns)}) WITH ORDINALITY "
        f"AS given ({listed}, ordinal)"
    )
    return Part(sql, "change", before=head)


def _given(columns: Sequence[tuple[str, str, str]]) -> str:
    """Return a subquery that turns arrays into rows.

    `columns` has the table and column that give each array its type, and its alias. A single
    `unnest` of all arrays in FROM would materialise the elements of each array first, which costs
    more than the few rows of an event.
    """
    listed = ", ".join(
        f"unnest(%s::{_element(table, column)}[]) AS {name}" for table, column, name in columns
    )
    return f"(SELECT {listed}) AS given"


def _marks(table: str, columns: tuple[str, ...]) -> str:
    return ", ".join(f"%s::{_element(table, name)}[]" for name in columns)


def _are_ints(table: str, columns: tuple[str, ...]) -> tuple[bool, ...]:
    return tuple(_element(table, name) in ("BIGINT", "INTEGER") for name in columns)


@cache
def _element(table: str, column: str) -> str:
    kind = Table.metadata.tables[table].c[column].type
    name = str(kind.compile(PGDialect()))  # type: ignore[no-untyped-call]
    # A cast to VARCHAR(n) truncates a longer string; as TEXT it reaches the column and fails.
    return "TEXT" if name.startswith(("VARCHAR", "CHAR")) else name


# Array literals: for many values several times faster than adapting each, and as fast to parse.
# Header: dimensions, has NULLs, element type; then length and lower bound of the dimension.
ARRAY_HEAD, LENGTH = struct.Struct("!iiIii"), struct.Struct("!i")
BYTEA = 17
SEPARATOR = "\x1f"


def number_array(values: Sequence[int | None]) -> str:
    """Return `{1, 2, NULL}`."""
    # repr of a list is the fastest way, and PostgreSQL allows the spaces.
    return "{" + repr(list(values))[1:-1].replace("None", "NULL") + "}"


def text_array(values: Sequence[str | None]) -> str:
    """Return `{"a","b",NULL}`, with quotes and backslashes escaped."""
    if not values:
        return "{}"
    if None in values:
        return "{" + ",".join(map(_quoted, values)) + "}"
    # Escape all values at once, joined by a separator that none of them contains.
    joined = SEPARATOR.join(values)  # type: ignore[arg-type]
    if joined.count(SEPARATOR) != len(values) - 1:
        return "{" + ",".join(map(_quoted, values)) + "}"
    return '{"' + _escaped(joined).replace(SEPARATOR, '","') + '"}'


def time_array(values: Sequence[str | None]) -> str:
    """Return `{2026-09-01T12:00:00+00:00,NULL}` for formatted times and dates."""
    if None in values:
        return "{" + ",".join(["NULL" if value is None else value for value in values]) + "}"
    return "{" + ",".join(values) + "}"  # type: ignore[arg-type]


def bytea_array(values: Sequence[bytes]) -> bytes:
    """Return a binary array of bytes: as text it would be larger and slower to parse."""
    parts = [ARRAY_HEAD.pack(1, 0, BYTEA, len(values), 1)]
    for value in values:
        parts += (LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _quoted(value: str | None) -> str:
    if value is None:
        return "NULL"
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')


WRITERS: dict[str, Writer] = {
    "BIGINT": number_array,
    "INTEGER": number_array,
    "BYTEA": bytea_array,
    "TEXT": text_array,
    "UUID": text_array,
    "DATE": time_array,
    "TIMESTAMP WITH TIME ZONE": time_array,
}
