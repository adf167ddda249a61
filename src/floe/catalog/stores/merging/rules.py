"""How rows of many writers become one: rules that do not ask which of them came first."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Protocol

from sqlalchemy import Connection

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Through:
    """A table that has the number of what rows name otherwise.

    A merge into it returns both, for every row.
    """

    table: str
    by: str


@dataclass(frozen=True)
class Unless:
    """A table of which some columns must not have the values of a row."""

    table: str
    columns: tuple[str, ...]

    def condition(self, given: Mapping[str, str]) -> str:
        """What has to hold for a row, of whose values the names are given."""
        same = " AND ".join(f"{self.table}.{name} = {given[name]}" for name in self.columns)
        return f"NOT EXISTS (SELECT 1 FROM {self.table} WHERE {same})"  # noqa: S608


@dataclass(frozen=True)
class Merge:
    """An insert that joins what is there already.

    `update` gives each column that may change its new value, `{old}` and `{new}` standing for the
    row that is there and the one that comes; `when` says whether anything would change at all.
    The SQL in them is what every store understands. With `through` the first column is a number
    that the store finds by what rows have in its place. With `unless` a row is left out when its
    values are those of a row there. One that is `numbered` gives rows numbers that were taken.
    """

    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    update: tuple[tuple[str, str], ...] = ()
    when: str = ""
    returning: tuple[str, ...] = ()
    through: Through | None = None
    unless: Unless | None = None
    numbered: bool = False

    def on_conflict(self) -> str:
        """The end of an INSERT: what to do with a row that is there already."""
        ending = ""
        if self.update:
            changes = (f"{name} = {self._filled(value)}" for name, value in self.update)
            ending = f" ON CONFLICT ({', '.join(self.key)}) DO UPDATE SET {', '.join(changes)}"
            ending += f" WHERE {self._filled(self.when)}" if self.when else ""
        elif self.key:
            ending = f" ON CONFLICT ({', '.join(self.key)}) DO NOTHING"
        return ending + (f" RETURNING {', '.join(self.returning)}" if self.returning else "")

    def _filled(self, text: str) -> str:
        return text.format(old=self.table, new="excluded")


@dataclass(frozen=True)
class Written:
    """Rows that a merge returned: those with these values, known by the number in a column."""

    by: str
    values: tuple[tuple[str, str], ...]

    def numbers(self, returning: Sequence[str], rows: Sequence[Row]) -> set[int]:
        """The numbers among rows that came back."""
        named = (dict(zip(returning, row, strict=True)) for row in rows)
        return {
            row[self.by]
            for row in named
            if all(row[column] == value for column, value in self.values)
        }


@dataclass(frozen=True)
class Assign:
    """A column that is set by the number of its row, where it differs and a condition holds.

    `written` leaves out rows that a merge did not write.
    """

    table: str
    number: str
    column: str
    condition: str
    written: Written | None = None


@dataclass(frozen=True)
class Lookup:
    """Rows of a table by lists of values: each column of `by` is one of those given for it."""

    table: str
    columns: tuple[str, ...]
    by: tuple[str, ...]


class Merging(Protocol):
    """How a store takes many rows at once. Values are as its driver has them."""

    def prepare(self, connection: Connection) -> None:
        """Make a new connection one that takes rows, and serves for nothing else."""

    def tidy(self, connection: Connection) -> None:
        """Do what was put off while rows came in. The connection is in no transaction."""

    def moment(self, value: datetime) -> Any:
        """A time as the driver takes it."""

    def day(self, value: date) -> Any:
        """A date as the driver takes it."""

    def as_moment(self, value: Any) -> datetime:
        """A time as the driver gives it."""

    def as_day(self, value: Any) -> date:
        """A date as the driver gives it."""

    def together(self, connection: Connection) -> AbstractContextManager[object]:
        """Send what follows without waiting for each answer, where the driver can.

        It may commit at its end, unless the transaction was begun before.
        """

    def start(self, connection: Connection) -> None:
        """Let the store begin with what it was given, where it can do so beside the caller."""

    def find(self, connection: Connection, lookup: Lookup, *values: Collection[Any]) -> "Answer":
        """Ask for rows; the answer is fetched when it is needed."""

    def lock_log(self, connection: Connection) -> None:
        """Hold the head of the change log until the commit."""

    def append_changes(
        self, connection: Connection, columns: tuple[str, ...], rows: Sequence[Row]
    ) -> None:
        """Give rows of the change log the next positions and write them."""

    def merge(self, connection: Connection, merge: Merge, rows: Sequence[Row]) -> None:
        """Insert rows or join them to those that are there. No key may come twice."""

    def merge_returning(
        self, connection: Connection, merge: Merge, rows: Sequence[Row]
    ) -> "Answer":
        """The same, and answer with those rows that were written."""

    def assign(
        self, connection: Connection, assign: Assign, rows: Sequence[tuple[int, Any]]
    ) -> None:
        """Set a column by row number, where it differs."""

    def assign_written(
        self,
        connection: Connection,
        assign: Assign,
        rows: Sequence[tuple[int, Any]],
        written: "Answer",
    ) -> bool:
        """The same for rows that a merge wrote, without waiting for its answer.

        False where that cannot be; then nothing was done.
        """

    def take_numbers(self, connection: Connection, table: str, column: str, count: int) -> "Answer":
        """Take numbers for rows that are about to be written."""


class Answer(Protocol):
    """Rows that were asked for. The later they are fetched, the less is waited for them."""

    def fetchall(self) -> list[Row]: ...


class Fetched:
    """Rows that are there already."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows

    def fetchall(self) -> list[Row]:
        return self._rows


def earliest(column: str) -> tuple[str, str]:
    """Keep the smaller of two values, or the one that there is."""
    return column, (
        f"CASE WHEN {{old}}.{column} IS NULL OR {{new}}.{column} < {{old}}.{column} "
        f"THEN {{new}}.{column} ELSE {{old}}.{column} END"
    )


def latest(column: str) -> tuple[str, str]:
    """Keep the larger of two values, or the one that there is."""
    return column, (
        f"CASE WHEN {{old}}.{column} IS NULL OR {{new}}.{column} > {{old}}.{column} "
        f"THEN {{new}}.{column} ELSE {{old}}.{column} END"
    )


def preferred(column: str, condition: str) -> tuple[str, str]:
    """Take the new value where a condition holds, else keep the old one."""
    return column, f"CASE WHEN {condition} THEN {{new}}.{column} ELSE {{old}}.{column} END"
