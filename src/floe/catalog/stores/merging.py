"""Merge rows of many writers by rules that do not depend on their order."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from sqlalchemy import Connection

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Through:
    """A table to look up the id of the first column by another column.

    A merge into that table returns both columns for every row.
    """

    table: str
    by: str


@dataclass(frozen=True)
class Unless:
    """A table that must not contain a row with the same values in these columns."""

    table: str
    columns: tuple[str, ...]

    def condition(self, values: Mapping[str, str]) -> str:
        """Return the SQL condition, with the expressions of the row's values."""
        same = " AND ".join(f"{self.table}.{name} = {values[name]}" for name in self.columns)
        return f"NOT EXISTS (SELECT 1 FROM {self.table} WHERE {same})"  # noqa: S608


@dataclass(frozen=True)
class Merge:
    """An upsert: insert rows, and merge those whose key exists.

    `update` maps each column that may change to its new value, with `{old}` for the stored row and
    `{new}` for the new one; `when` tells whether anything would change at all. Their SQL must work
    on every store. With `through` the first column is an id that the store looks up by the value
    in its place. With `unless` a row is skipped if that table contains its values. With `with_ids`
    the rows bring ids that were reserved before.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    when: str = ""
    returning: tuple[str, ...] = ()
    through: Through | None = None
    unless: Unless | None = None
    with_ids: bool = False

    def on_conflict(self) -> str:
        """Return the ON CONFLICT and RETURNING clauses of the INSERT."""
        ending = ""
        if self.update:
            changes = (f"{name} = {self._format(value)}" for name, value in self.update)
            ending = f" ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {', '.join(changes)}"
            ending += f" WHERE {self._format(self.when)}" if self.when else ""
        elif self.key:
            ending = f" ON CONFLICT ({', '.join(self.key)}) DO NOTHING"
        return ending + (f" RETURNING {', '.join(self.returning)}" if self.returning else "")

    def _format(self, text: str) -> str:
        return text.format(old=self.table, new="excluded")


@dataclass(frozen=True)
class Written:
    """Rows that a merge returned, filtered by values and identified by an id column."""

    by: str
    values: tuple[tuple[str, str], ...]

    def ids(self, returning: Sequence[str], rows: Sequence[Row]) -> set[int]:
        """Return the ids of the returned rows that match."""
        named = (dict(zip(returning, row, strict=True)) for row in rows)
        return {
            row[self.by]
            for row in named
            if all(row[column] == value for column, value in self.values)
        }


@dataclass(frozen=True)
class Assign:
    """An update of one column by row id, if the value differs and a condition holds.

    `written` limits it to rows that a merge has written.
    """

    table: str
    id_column: str
    column: str
    condition: str
    written: Written | None = None


@dataclass(frozen=True)
class Lookup:
    """A query for rows by lists of values: one list for each column of `by`."""

    table: str
    columns: tuple[str, ...]
    by: tuple[str, ...]


class Merging(Protocol):
    """How a store takes many rows at once. Values are in the driver's format."""

    def prepare(self, connection: Connection) -> None:
        """Prepare a new connection for merging; it serves no other purpose."""

    def tidy(self, connection: Connection) -> None:
        """Do postponed maintenance. The connection must not be in a transaction."""

    def encode_time(self, value: datetime) -> Any:
        """Convert a time to the driver's format."""

    def encode_date(self, value: date) -> Any:
        """Convert a date to the driver's format."""

    def decode_time(self, value: Any) -> datetime:
        """Convert a time from the driver's format."""

    def decode_date(self, value: Any) -> date:
        """Convert a date from the driver's format."""

    def pipeline(self, connection: Connection) -> AbstractContextManager[object]:
        """Send statements without waiting for each result, where the driver can.

        It may commit at the end, unless the transaction was started before.
        """

    def start(self, connection: Connection) -> None:
        """Let the store start on the pending statements in parallel, where it can."""

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> "Answer":
        """Query rows; the result is fetched when it is needed."""

    def lock_log(self, connection: Connection) -> None:
        """Lock the head of the change log until the commit."""

    def append_changes(
        self, connection: Connection, columns: tuple[str, ...], rows: Sequence[Row]
    ) -> None:
        """Append rows to the change log, at the next positions."""

    def merge(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> None:
        """Insert rows, or merge them with stored ones. Keys must be unique within `rows`."""

    def merge_returning(
        self, connection: Connection, merge: Merge, rows: Sequence[Row]
    ) -> "Answer":
        """Merge rows, and return those that were written."""

    def assign(
        self, connection: Connection, assign: Assign, rows: Sequence[tuple[int, Any]]
    ) -> None:
        """Set a column by row id, where the value differs."""

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: "Answer",
    ) -> bool:
        """Set a column of rows that a merge wrote, without waiting for its result.

        Return False if that is not possible; then nothing was done.
        """

    def reserve_ids(self, connection: Connection, table: str, column: str, count: int) -> "Answer":
        """Reserve ids for rows that are about to be written."""


class Answer(Protocol):
    """The result of a query. The later it is fetched, the shorter the wait."""

    def fetchall(self) -> list[Row]: ...


class Fetched:
    """A result that has been fetched already."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Row]:
        return self._rows


def earliest(column: str) -> tuple[str, str]:
    """Keep the smaller of two values; NULL loses."""
    return column, (
        f"CASE WHEN {{old}}.{column} IS NULL OR {{new}}.{column} < {{old}}.{column} "
        f"THEN {{new}}.{column} ELSE {{old}}.{column} END"
    )


def latest(column: str) -> tuple[str, str]:
    """Keep the larger of two values; NULL loses."""
    return column, (
        f"CASE WHEN {{old}}.{column} IS NULL OR {{new}}.{column} > {{old}}.{column} "
        f"THEN {{new}}.{column} ELSE {{old}}.{column} END"
    )


def preferred(column: str, condition: str) -> tuple[str, str]:
    """Take the new value where a condition holds, else keep the old one."""
    return column, f"CASE WHEN {condition} THEN {{new}}.{column} ELSE {{old}}.{column} END"
