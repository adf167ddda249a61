"""Merge rows on SQLite: one prepared statement, run for each row."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, date, datetime
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection

from floe.catalog.stores.merging.rules import Answer, Assign, Fetched, Lookup, Merge, Row

TAKE_POSITIONS = (
    "UPDATE change_head SET last_position = last_position + ? WHERE head_id = 1 "
    "RETURNING last_position"
)


# 64 MB; in a quiet moment it is copied however short it is.
MOST_LOGGED_PAGES = 16_384
LENGTH_OF_MOMENT = len("2026-09-01 06:30:00.000000")


class SqliteMerging:
    """Writes rows whose values are as sqlite3 takes them."""

    def prepare(self, connection: Connection) -> None:
        """Let the log grow: to copy it into the file every few groups takes a tenth of the time."""
        _cursor(connection).execute(f"PRAGMA wal_autocheckpoint = {MOST_LOGGED_PAGES}")

    def tidy(self, connection: Connection) -> None:
        _cursor(connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()

    def moment(self, value: datetime) -> str:
        """A time as SQLAlchemy stores it, so that both read the same."""
        # Without its zone, which is always UTC. Several times faster than strftime.
        return value.isoformat(" ", "microseconds")[:LENGTH_OF_MOMENT]

    def day(self, value: date) -> str:
        return value.isoformat()

    def as_moment(self, value: str) -> datetime:
        return datetime.fromisoformat(value).replace(tzinfo=UTC)

    def as_day(self, value: str) -> date:
        return date.fromisoformat(value)

    def together(self, connection: Connection) -> AbstractContextManager[object]:
        """Nothing to send: SQLite answers in the same process."""
        return nullcontext()

    def start(self, connection: Connection) -> None:
        """Nothing to begin with: all is done by now."""

    def merge(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> None:
        _cursor(connection).executemany(_insert(merge), rows)

    def merge_returning(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> Answer:
        cursor, statement = _cursor(connection), _insert(merge)
        found: list[Row] = []
        for row in rows:
            found += cursor.execute(statement, row).fetchall()
        return Fetched(found)

    def assign(
        self, connection: Connection, assign: Assign, rows: Sequence[tuple[int, Any]]
    ) -> None:
        values = [(value, number, value) for number, value in rows]
        _cursor(connection).executemany(_update(assign), values)

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: Answer,
    ) -> bool:
        """Nothing is gained: the answer is there already."""
        return False

    def take_numbers(self, connection: Connection, table: str, column: str, count: int) -> Answer:
        # The writer holds the whole file, so nobody else takes them.
        sql = f"SELECT coalesce(max({column}), 0) FROM {table}"  # noqa: S608
        (last,) = _cursor(connection).execute(sql).fetchone()
        return Fetched([(last + place,) for place in range(1, count + 1)])

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> Answer:
        given = [msgspec.json.encode(list(some)).decode() for some in values]
        answer: Answer = _cursor(connection).execute(_select(lookup), given)
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
            _append(columns), [(first + place, *row) for place, row in enumerate(rows)]
        )


def _cursor(connection: Connection) -> Any:
    driver: Any = connection.connection.dbapi_connection
    return driver.cursor()


@cache
def _insert(merge: Merge) -> str:
    marks = ["?"] * len(merge.columns)
    if merge.through is not None:
        found = f"SELECT {merge.columns[0]} FROM {merge.through.table}"  # noqa: S608
        marks[0] = f"({found} WHERE {merge.through.by} = ?)"
    columns = ", ".join(merge.columns)
    if merge.unless is not None:
        given = {name: f"?{place}" for place, name in enumerate(merge.columns, 1)}
        return (
            f"INSERT INTO {merge.table} ({columns}) SELECT {', '.join(given.values())} "
            f"WHERE {merge.unless.condition(given)}{merge.on_conflict()}"
        )
    return f"INSERT INTO {merge.table} ({columns}) VALUES ({', '.join(marks)}){merge.on_conflict()}"  # noqa: S608


@cache
def _update(assign: Assign) -> str:
    return (
        f"UPDATE {assign.table} SET {assign.column} = ? "  # noqa: S608
        f"WHERE {assign.number} = ? AND {assign.condition} AND {assign.column} IS NOT ?"
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
