"""Merge rows on PostgreSQL: one array per column, one statement text whatever the row count."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Connection
from sqlalchemy.dialects.postgresql.base import PGDialect

from floe.catalog.stores.merging.arrays import WRITERS, Writer
from floe.catalog.stores.merging.bundle import FEEDER, Bundle, Part, fed_by
from floe.catalog.stores.merging.bundle import Answer as Awaited
from floe.catalog.stores.merging.rules import Answer, Assign, Fetched, Lookup, Merge, Row, Through
from floe.catalog.stores.merging.wire import Value, Wire
from floe.catalog.tables import Table

# It returns something, because a question whose answer nobody reads is never asked.
LOCK_LOG = Part(
    "SELECT last_position FROM change_head WHERE head_id = 1 FOR UPDATE",
    "",
    ("last_position",),
    (True,),
)

# All that is asked for here is found by an index, a few rows of it. The server cannot know: while
# a table is new it reckons with next to no rows, and would read the whole of it for each event.
PLANS = (
    "plan_cache_mode = force_generic_plan",
    "enable_seqscan = off",
    "enable_hashjoin = off",
    "enable_mergejoin = off",
    # To compile a plan takes longer than to run these.
    "jit = off",
)

# What was prepared stays with its connection, whoever takes that out of the pool next.
_wires: WeakKeyDictionary[Any, Wire] = WeakKeyDictionary()


class PostgresqlMerging:
    """Writes rows whose values are as psycopg takes them, several tables in one statement."""

    def __init__(self) -> None:
        self._bundle: Bundle | None = None

    def prepare(self, connection: Connection) -> None:
        for setting in PLANS:
            connection.exec_driver_sql(f"SET {setting}")
        connection.commit()

    def tidy(self, connection: Connection) -> None:
        """Nothing to do: the server tidies up by itself."""

    def moment(self, value: datetime) -> str:
        return value.isoformat()

    def day(self, value: date) -> str:
        return value.isoformat()

    def as_moment(self, value: str) -> datetime:
        return datetime.fromisoformat(value).astimezone(UTC)

    def as_day(self, value: str) -> date:
        return date.fromisoformat(value)

    @contextmanager
    def together(self, connection: Connection) -> Iterator[None]:
        driver: Any = connection.connection.dbapi_connection
        wire = _wire_of(driver)
        wire.begin()
        try:
            bundle = self._bundle = Bundle(wire)
            yield
            bundle.send()
            bundle.hand_out(wire.end())
        except BaseException:
            wire.abandon()
            raise
        finally:
            self._bundle = None

    def start(self, connection: Connection) -> None:
        self._sent().start()

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

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: Answer,
    ) -> bool:
        if not self._sent().may_refer(written, assign.table):
            return False
        assert isinstance(written, Awaited)
        part = fed_by(_update(assign), written.place)
        self._add(part, _arrays(assign.table, (assign.number, assign.column), rows))
        return True

    def take_numbers(self, connection: Connection, table: str, column: str, count: int) -> Answer:
        return self._add(_next_numbers(table, column), [str(count)])

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
            self._add(_append(columns), [str(len(rows)), str(len(rows)), *arrays])

    def _add(self, part: Part, values: Sequence[Value], rows: int = 1) -> Answer:
        return self._sent().add(part, values, rows)

    def _sent(self) -> Bundle:
        assert self._bundle is not None, "rows are written within together()"
        return self._bundle


def _wire_of(driver: Any) -> Wire:
    wire = _wires.get(driver)
    if wire is None:
        wire = _wires[driver] = Wire(driver.pgconn)
    return wire


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
        number = f"numbered.{merge.columns[0]}"
        sql = f"{into}SELECT {number}, {others} FROM {rows}{ending}"  # noqa: S608
        fed_sql = (
            f"{into}SELECT coalesce(fresh.{merge.columns[0]}, {number}), {others} "  # noqa: S608
            f"FROM {rows.replace('JOIN', 'LEFT JOIN')} "
            f"LEFT JOIN {FEEDER} AS fresh USING ({through.by}){ending}"
        )
    else:
        rows = _given([(merge.table, name, name) for name in merge.columns])
        if merge.unless is not None:
            rows += f" WHERE {merge.unless.condition({n: f'given.{n}' for n in merge.columns})}"
        # The number of a row is the table's own to give, unless it was taken before.
        own = "OVERRIDING SYSTEM VALUE " if merge.numbered else ""
        sql = f"{into}{own}SELECT {columns} FROM {rows}{ending}"  # noqa: S608
    return Part(
        sql,
        merge.table,
        merge.returning,
        _numbers(merge.table, merge.returning),
        reads=through.table if through else "",
        fed_sql=fed_sql,
    )


def _given_through(merge: Merge, through: Through) -> str:
    named = [(merge.table, name, name) for name in merge.columns[1:]]
    given = _given([(through.table, through.by, through.by), *named])
    return (
        f"{given} "  # noqa: S608
        f"JOIN (SELECT {through.by}, {merge.columns[0]} FROM {through.table}) AS numbered "
        f"USING ({through.by})"
    )


@cache
def _update(assign: Assign) -> Part:
    given = _given(
        [(assign.table, assign.number, "number"), (assign.table, assign.column, "value")]
    )
    sql = (
        f"UPDATE {assign.table} SET {assign.column} = given.value "  # noqa: S608
        f"FROM {given} "
        f"WHERE {assign.table}.{assign.number} = given.number AND {assign.condition} "
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
        f"WHERE {FEEDER}.{written.by} = given.number AND {same})"
    )


@cache
def _next_numbers(table: str, column: str) -> Part:
    sql = (
        f"SELECT nextval(pg_get_serial_sequence('{table}', '{column}')) AS number "  # noqa: S608
        "FROM generate_series(1, %s::int)"
    )
    return Part(sql, "", ("number",), (True,))


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


def _given(columns: Sequence[tuple[str, str, str]]) -> str:
    """Rows of arrays, one for each column: of which table and column it is, and its name here.

    Not `unnest` of them all in FROM, which would put down each array's elements before it reads
    them: that costs more than the few rows of an event.
    """
    listed = ", ".join(
        f"unnest(%s::{_element(table, column)}[]) AS {name}" for table, column, name in columns
    )
    return f"(SELECT {listed}) AS given"


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
