"""Small things that every noun's module does with rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from floe import clock

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
