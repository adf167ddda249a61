"""When a row violates a check that looks at one row at a time. Pure.

A null violates not_null and nothing else: it lies within every range, and is no value that could
be missing in a list. Whoever forbids nulls says so with a check of its own.
"""

from collections.abc import Sequence

from floe.quality.columns import Columns
from floe.quality.errors import WrongPartError
from floe.quality.quoting import REALS, TEXTS, base_type, quote_column, quote_value
from floe.spec.checks import AcceptedValuesCheck, NotNullCheck, RangeCheck

RowCheck = NotNullCheck | AcceptedValuesCheck | RangeCheck
# What can prove of a whole file that no row of it violates a check: the bounds and nulls that are
# kept of its columns, or the list of the values that occur in it.
BOUNDS, VALUES = "bounds", "values"


def violation(check: RowCheck, columns: Columns) -> str:
    """Return the condition that is true for a row that violates the check."""
    if isinstance(check, NotNullCheck):
        return any_null(check.columns)
    kind = columns.type_of(check.column)
    if isinstance(check, RangeCheck):
        return _outside(check, kind)
    values = [quote_value(value, kind) for value in check.values if value is not None]
    if not values:
        raise WrongPartError("its list holds only nulls. List the values that are accepted.")
    return f"{quote_column(check.column)} NOT IN ({', '.join(values)})"


def proof_of(check: RowCheck, columns: Columns) -> str | None:
    """Return what can prove that no row violates the check, if anything can."""
    if isinstance(check, NotNullCheck):
        return BOUNDS
    base = base_type(columns.type_of(check.column))
    # NaN lies outside of all bounds that are kept, and text may be compared as numbers.
    if not base or base in REALS:
        return None
    if isinstance(check, RangeCheck):
        return None if base in TEXTS else BOUNDS
    return VALUES


def any_null(names: Sequence[str]) -> str:
    """Return the condition that a row lacks a value in one of the columns."""
    return " OR ".join(f"{quote_column(name)} IS NULL" for name in names)


def _outside(check: RangeCheck, kind: str) -> str:
    column, base = quote_column(check.column), base_type(kind)
    if base in TEXTS and _is_number(check.min) and _is_number(check.max):
        # Text would be compared letter by letter, and '10' comes before '9'.
        return _outside_as_number(column, check)
    low = [] if check.min is None else [f"{column} < {quote_value(check.min, kind)}"]
    high = [] if check.max is None else [f"{column} > {quote_value(check.max, kind)}"]
    # To Spark NaN is larger than every number, so no lower bound would ever find it.
    odd = [f"isnan({column})"] if base in REALS else []
    return " OR ".join(low + high + odd)


def _outside_as_number(column: str, check: RangeCheck) -> str:
    number = f"try_cast({column} AS DOUBLE)"
    bounds = [
        f"{number} {sign} {quote_value(bound, 'double')}"
        for sign, bound in (("<", check.min), (">", check.max))
        if bound is not None
    ]
    return " OR ".join([*bounds, f"({column} IS NOT NULL AND {number} IS NULL)"])


def _is_number(bound: object) -> bool:
    return bound is None or isinstance(bound, int | float)
