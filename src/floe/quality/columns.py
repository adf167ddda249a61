"""The columns that a check may speak of, by the names that Spark knows them by. Pure."""

from collections.abc import Iterable
from typing import Protocol


class ColumnLike(Protocol):
    """A column as declared in floe.yaml, or as the catalog saw it."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def nullable(self) -> bool: ...


class Columns:
    """The columns of a version. Spark does not tell upper from lower case in their names."""

    def __init__(self, columns: Iterable[ColumnLike]) -> None:
        self._by_name = {column.name.lower(): column for column in columns}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return which of these are not there; of no known schema, none can be missing."""
        return [name for name in names if self and name.lower() not in self._by_name]

    def type_of(self, name: str) -> str:
        """Return the type of a column, an empty text when it is not known."""
        column = self._by_name.get(name.lower())
        return column.type if column else ""

    def required(self) -> list[str]:
        """Return the columns whose contract is to hold a value in every row."""
        return [column.name for column in self._by_name.values() if not column.nullable]
