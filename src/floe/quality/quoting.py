"""Write names and values as Spark SQL, so that nothing in them is ever read as SQL. Pure."""

import re
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from floe.quality.errors import WrongPartError

REALS = frozenset({"float", "real", "double"})
NUMBERS = REALS | {
    *("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
    *("decimal", "numeric", "dec"),
}
TEXTS = frozenset({"string", "char", "varchar"})
TIMES = {
    "timestamp": "TIMESTAMP",
    "timestamp_ltz": "TIMESTAMP_LTZ",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
# Spark's largest decimal; what is longer can only be a double.
_MOST_DIGITS = 38


def base_type(kind: str) -> str:
    """Return a type without its size: `decimal(18,2)` is a decimal."""
    return re.split(r"[(<\s]", kind.strip().lower(), maxsplit=1)[0]


def quote_column(name: str) -> str:
    """Write the name of a column."""
    return "`" + name.replace("`", "``") + "`"


def quote_name(name: str) -> str:
    """Write the name of a view or table; parts that hold dots come in backticks already."""
    parts = []
    position = 0
    while found := _PART.match(name, position):
        parts.append(found[1].replace("``", "`") if found[1] else found[2])
        position = found.end() + 1
        if found.end() == len(name):
            return ".".join(map(quote_column, parts))
        if name[found.end()] != ".":
            break
    raise WrongPartError(f"'{name}' is not the name of a table.")


def quote_text(text: str) -> str:
    """Write text. A dollar is escaped too: Spark would put a variable in place of `${name}`."""
    escaped = "".join(_escape(letter) for letter in text)
    return f"'{escaped}'"


def _escape(letter: str) -> str:
    if letter in "\\'":
        return "\\" + letter
    return f"\\u{ord(letter):04X}" if letter == "$" or ord(letter) < 32 else letter


def quote_value(value: Any, kind: str = "") -> str:
    """Write a value that a column of this type is compared with; without a type, as it looks."""
    base = base_type(kind)
    if base in NUMBERS:
        return _number(value, kind)
    if base == "date":
        return f"DATE '{_moment(value, kind, date)}'"
    if base in TIMES:
        return f"{TIMES[base]} '{_moment(value, kind, datetime)}'"
    if base == "boolean":
        return _truth(value, kind)
    if base in TEXTS:
        return quote_text(_plain_text(value))
    return _as_it_looks(value)


def _as_it_looks(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float | Decimal):
        return _number(value, "")
    if isinstance(value, datetime):
        return quote_value(value, "timestamp")
    if isinstance(value, date):
        return quote_value(value, "date")
    if isinstance(value, str):
        return quote_text(value)
    raise WrongPartError(f"{value!r} is not a value that SQL knows.")


def _plain_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _truth(value: Any, kind: str) -> str:
    words = {"true": "TRUE", "false": "FALSE"}
    found = words.get(str(value).lower())
    if found is None:
        raise _unfit(value, kind, "true or false")
    return found


def _number(value: Any, kind: str) -> str:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise _unfit(value, kind, "a number, such as 0.5") from None
    if not number.is_finite():
        raise _unfit(value, kind, "a number, such as 0.5")
    digits = f"{number:f}"
    exact = digits if sum(map(str.isdigit, digits)) <= _MOST_DIGITS else f"{float(number)!r}D"
    # 0.1 as a decimal is not 0.1 as a float: both sides of a comparison must be rounded alike.
    return f"CAST({exact} AS FLOAT)" if base_type(kind) in ("float", "real") else exact


def _moment(value: Any, kind: str, wanted: type[date]) -> str:
    if isinstance(value, date):
        return str(value)
    try:
        found = wanted.fromisoformat(value)
    except (TypeError, ValueError):
        example = "2026-09-01" if wanted is date else "2026-09-01 18:30:00"
        raise _unfit(value, kind, f"it as {example}") from None
    return str(found)


def _unfit(value: Any, kind: str, wanted: str) -> WrongPartError:
    column = f"a column of type {kind}" if kind else "a column"
    return WrongPartError(f"'{value}' cannot be compared with {column}. Write {wanted}.")
