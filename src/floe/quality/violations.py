"""SQL conditions for violations of row checks. Pure.

Row checks are not_null, accepted_values and range. Nulls violate only not_null; the others ignore
them.
"""

from collections.abc import Iterable, Sequence
from typing import Protocol

from floe.quality.check_sql import (
    REALS,
    TEXTS,
    CheckSqlError,
    base_type,
    quote_column,
    quote_value,
)
from floe.spec.checks import AcceptedValuesCheck, NotNullCheck, RangeCheck

RowCheck = NotNullCheck | AcceptedValuesCheck | RangeCheck
# File statistics that can prove that no row of a file violates a check: the bounds and null counts
# of its columns, or the list of its values.
BOUNDS, VALUES = "bounds", "values"


class ColumnLike(Protocol):
    """A column as declared in floe.yaml or as observed by the catalog."""

    @property
    def name(self) -> str: ...
    @property
    def type(self) -> str: ...
    @property
    def nullable(self) -> bool: ...


class Columns:
    """The columns of a version. Names are case-insensitive, as in Spark."""

    def __init__(self, columns: Iterable[ColumnLike]) -> None:
        self._by_name = {column.name.lower(): column for column in columns}

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def missing(self, names: Iterable[str]) -> list[str]:
        """Return which names are missing; an unknown schema has no missing columns."""
        return [name for name in names if self and name.lower() not in self._by_name]

    def type_of(self, name: str) -> str:
        """Return the type of a column, or an empty string if it is unknown."""
        column = self._by_name.get(name.lower())
        return column.type if column else ""

    def required(self) -> list[str]:
        """Return the columns that may not be null."""
        return [column.name for column in self._by_name.values() if not column.nullable]


def violation(check: RowCheck, columns: Columns) -> str:
    """Return the condition that is true for a row that violates the check."""
    if isinstance(check, NotNullCheck):
        return any_null(check.columns)
    kind = columns.type_of(check.column)
    if isinstance(check, RangeCheck):
        return _outside(check, kind)
    values = [quote_value(value, kind) for value in check.values if value is not None]
    if not values:
        raise CheckSqlError("its list of values has only nulls. List the accepted values.")
    return f"{quote_column(check.column)} NOT IN ({', '.join(values)})"


def proof_of(check: RowCheck, columns: Columns) -> str | None:
    """Return which file statistics can prove that no row violates the check."""
    if isinstance(check, NotNullCheck):
        return BOUNDS
    base = base_type(columns.type_of(check.column))
    # Bounds do not include NaN, and text may be compared as numbers.
    if not base or base in REALS:
        return None
    if isinstance(check, RangeCheck):
        return None if base in TEXTS else BOUNDS
    return VALUES


def any_null(names: Sequence[str]) -> str:
    """Return the condition that a row has a null in one of the columns."""
    return " OR ".join(f"{quote_column(name)} IS NULL" for name in names)


def _outside(check: RangeCheck, kind: str) -> str:
    column, base = quote_column(check.column), base_type(kind)
    if base in TEXTS and _is_number(check.min) and _is_number(check.max):
        # As text, '10' sorts before '9'.
        return _outside_as_number(column, check)
    low = [] if check.min is None else [f"{column} < {quote_value(check.min, kind)}"]
    high = [] if check.max is None else [f"{column} > {quote_value(check.max, kind)}"]
    # Spark sorts NaN above every number, so no lower bound would match it.
    nan = [f"isnan({column})"] if base in REALS else []
    return " OR ".join(low + high + nan)


def _outside_as_number(column: str, check: RangeCheck) -> str:
    as_double = f"try_cast({column} AS DOUBLE)"
    bounds = [
        f"{as_double} {sign} {quote_value(bound, 'double')}"
        for sign, bound in (("<", check.min), (">", check.max))
        if bound is not None
    ]
    return " OR ".join([*bounds, f"({column} IS NOT NULL AND {as_double} IS NULL)"])


def _is_number(bound: object) -> bool:
    return bound is None or isinstance(bound, int | float)
