"""Small things that every noun's module does with rows."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Date

from floe import clock
from floe.catalog.types import UtcTime

LARGEST_NUMBER = 2**63 - 1


@dataclass
class Difference:
    """The fields of one thing that change, with their values before and after."""

    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.after)

    def add(self, name: str, before: Any, after: Any) -> None:
        self.before[name], self.after[name] = before, after

    def update(self, other: "Difference") -> None:
        self.before.update(other.before)
        self.after.update(other.after)


def change_fields(row: Any, values: Mapping[str, Any]) -> Difference:
    """Set the fields of a row that differ, and its time of change; return what changed."""
    difference = Difference()
    for name, value in values.items():
        if (before := getattr(row, name)) != value:
            difference.add(name, before, value)
            setattr(row, name, value)
    if difference:
        row.updated_at = clock.now()
    return difference


def apply_fields(row: Any, values: Mapping[str, Any]) -> list[str]:
    """The same, and return only the names of the fields."""
    return list(change_fields(row, values).after)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what has no value."""
    return {name: value for name, value in values.items() if value is not None}


def number_of(text: str) -> int | None:
    """Read a row's number, None for what is none or is larger than any row's."""
    if not (text.isascii() and text.isdigit()):
        return None
    number = int(text[:20])
    return number if number <= LARGEST_NUMBER else None


def key_names(table: type[Any]) -> tuple[str, ...]:
    """Return the attributes that make up the primary key of a table."""
    mapper = table.__mapper__
    return tuple(mapper.get_property_by_column(column).key for column in mapper.primary_key)


def freeze_row(row: Any) -> dict[str, Any]:
    """Return the values of a row as JSON can hold them, by the names of its attributes."""
    names = [attribute.key for attribute in type(row).__mapper__.column_attrs]
    return {name: _frozen(getattr(row, name)) for name in names}


def _frozen(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def thaw_row(table: type[Any], frozen: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that `freeze_row` gave as a row of this table has them."""
    return {
        name: _thawed(table.__mapper__.column_attrs[name].columns[0].type, value)
        for name, value in frozen.items()
    }


def _thawed(kind: Any, value: Any) -> Any:
    if value is not None and isinstance(kind, UtcTime):
        return datetime.fromisoformat(value)
    return date.fromisoformat(value) if value is not None and isinstance(kind, Date) else value


# Databases take only so many values in one statement.
MOST_VALUES = 500
Value = TypeVar("Value")


def batches(values: Iterable[Value], size: int = MOST_VALUES) -> Iterator[list[Value]]:
    """Cut values into parts that one statement can take."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch
