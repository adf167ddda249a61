"""The SQL of checks: quoted names and values, conditions, queries."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from sqlglot import TokenType, exp, parse, tokenize
from sqlglot.errors import SqlglotError

from floe.errors import FloeError
from floe.spec.checks import ReferentialCheck, UniqueCheck

REALS = frozenset({"float", "real", "double"})
NUMBERS = REALS | {
    *("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint"),
    *("decimal", "numeric", "dec"),
}
TEXTS = frozenset({"string", "char", "varchar"})
TIME_TYPES = {
    "timestamp": "TIMESTAMP",
    "timestamp_ltz": "TIMESTAMP_LTZ",
    "timestamp_ntz": "TIMESTAMP_NTZ",
}
_PART = re.compile(r"`((?:[^`]|``)+)`|([^.`]+)")
# Spark's largest decimal; longer numbers are written as doubles.
_MOST_DIGITS = 38

DIALECT = "spark"
# Stands for the version in the SQL of a check.
PLACEHOLDER = "{dataset}"
_PLACEHOLDER_TABLE = "floe_version"

# The column with the number of rows of a key.
OCCURRENCES = "floe_times"


class CheckSqlError(FloeError):
    """Part of a check cannot be turned into SQL. The caller adds the label."""


class UnusableCheckError(FloeError):
    """A check cannot be turned into SQL."""

    def __init__(self, label: str, reason: str) -> None:
        self.label = label
        super().__init__(f"The check '{label}' cannot be used: {reason}")


def base_type(kind: str) -> str:
    """Return a type without its parameters: `decimal` for `decimal(18,2)`."""
    return re.split(r"[(<\s]", kind.strip().lower(), maxsplit=1)[0]


def quote_column(name: str) -> str:
    """Quote a column name."""
    return "`" + name.replace("`", "``") + "`"


def quote_name(name: str) -> str:
    """Quote a view or table name; parts with dots must be in backticks already."""
    parts = []
    position = 0
    while part := _PART.match(name, position):
        parts.append(part[1].replace("``", "`") if part[1] else part[2])
        position = part.end() + 1
        if part.end() == len(name):
            return ".".join(map(quote_column, parts))
        if name[part.end()] != ".":
            break
    raise CheckSqlError(f"'{name}' is not a valid table name.")


def quote_text(text: str) -> str:
    """Quote a string. Dollar signs are escaped because Spark substitutes `${name}`."""
    escaped = "".join(_escape(letter) for letter in text)
    return f"'{escaped}'"


def _escape(letter: str) -> str:
    if letter in "\\'":
        return "\\" + letter
    return f"\\u{ord(letter):04X}" if letter == "$" or ord(letter) < 32 else letter


def quote_value(value: Any, kind: str = "") -> str:
    """Write a literal for a column of type `kind`, or of the value's own type."""
    base = base_type(kind)
    if base in NUMBERS:
        return _number(value, kind)
    if base == "date":
        return f"DATE '{_date_or_time(value, kind, date)}'"
    if base in TIME_TYPES:
        return f"{TIME_TYPES[base]} '{_date_or_time(value, kind, datetime)}'"
    if base == "boolean":
        return _boolean(value, kind)
    if base in TEXTS:
        return quote_text(_plain_text(value))
    return _untyped_literal(value)


def _untyped_literal(value: Any) -> str:
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
    raise CheckSqlError(f"{value!r} cannot be written as a SQL value.")


def _plain_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _boolean(value: Any, kind: str) -> str:
    words = {"true": "TRUE", "false": "FALSE"}
    word = words.get(str(value).lower())
    if word is None:
        raise _incompatible(value, kind, "true or false")
    return word


def _number(value: Any, kind: str) -> str:
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        raise _incompatible(value, kind, "a number, such as 0.5") from None
    if not amount.is_finite():
        raise _incompatible(value, kind, "a number, such as 0.5")
    digits = f"{amount:f}"
    exact = digits if sum(map(str.isdigit, digits)) <= _MOST_DIGITS else f"{float(amount)!r}D"
    # 0.1 as a decimal differs from 0.1 as a float: cast so that both sides are rounded alike.
    return f"CAST({exact} AS FLOAT)" if base_type(kind) in ("float", "real") else exact


def _date_or_time(value: Any, kind: str, wanted: type[date]) -> str:
    if isinstance(value, date):
        return str(value)
    try:
        parsed = wanted.fromisoformat(value)
    except (TypeError, ValueError):
        is_date = wanted is date
        example = "a date, such as 2026-09-01" if is_date else "a time, such as 2026-09-01 18:30:00"
        raise _incompatible(value, kind, example) from None
    return str(parsed)


def _incompatible(value: Any, kind: str, wanted: str) -> CheckSqlError:
    column = f"a column of type {kind}" if kind else "a column"
    return CheckSqlError(f"'{value}' cannot be compared with {column}. Use {wanted}.")


@dataclass(frozen=True)
class Condition:
    """A condition on rows, and whether it contains a subquery."""

    text: str
    has_query: bool


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> Condition:
    """Validate a condition for use in a WHERE clause."""
    trees = _parse(f"(\n{text}\n)", text)
    # A closing parenthesis that matches ours would leave text after the condition.
    whole = len(trees) == 1 and isinstance(trees[0], exp.Paren)
    if not whole or isinstance(trees[0].this, exp.Alias):
        raise CheckSqlError(f"'{text}' must be a single condition, such as: status = 'open'")
    return Condition(text, trees[0].find(exp.Query) is not None)


@lru_cache(maxsize=1024)
def parse_query(text: str) -> exp.Query:
    """Parse a query that returns one column. Copy the cached tree before changes."""
    trees = _parse(text.replace(PLACEHOLDER, _PLACEHOLDER_TABLE), text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.SetOperation):
        raise CheckSqlError(f"its SQL must be a single SELECT: {_shorten(text)}")
    query = trees[0]
    if len(query.selects) != 1 or query.is_star:
        raise CheckSqlError(f"its SQL must return one column, not several: {_shorten(text)}")
    return query


def fill_query(text: str, source: str) -> str:
    """Return a query with its placeholder replaced by a source, without its semicolon."""
    parse_query(text)
    end = next((t.start for t in tokenize(text, DIALECT) if t.token_type is _END), len(text))
    return text[:end].replace(PLACEHOLDER, source)


_END = TokenType.SEMICOLON


def _parse(sql: str, written: str) -> list[exp.Expr]:
    try:
        trees = parse(sql, dialect=DIALECT)
    except (SqlglotError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise CheckSqlError(f"its SQL is invalid: {_shorten(written)} ({first})") from None
    # A comment after the last semicolon is parsed as a Semicolon.
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:117]}…"


def select(what: str, source: str, *rest: str) -> str:
    """Write a query. All arguments must be quoted names or validated SQL."""
    return " ".join(("SELECT", what, "FROM", source, *rest))


def rows_of(view: str, where: str | None) -> str:
    """Return the source of the rows that a check covers."""
    if where is None:
        return view
    query = select("*", view, "WHERE", f"(\n{parse_condition(where).text}\n)")
    return f"({query})"


def duplicate_keys(check: UniqueCheck, view: str) -> str:
    """Return a subquery with the keys that occur more than once, and how often.

    Rows whose key columns are all null are left out. Otherwise nulls count as equal values:
    (4711, null) twice is a duplicate.
    """
    keys = ", ".join(key_columns(check.columns))
    query = select(
        f"{keys}, count(*) AS {OCCURRENCES}",
        rows_of(view, check.where),
        f"WHERE {_has_key(check.columns)} GROUP BY {keys} HAVING count(*) > 1",
    )
    return f"({query})"


def key_columns(names: Sequence[str]) -> list[str]:
    """Return quoted key columns, sorted and in lower case."""
    return sorted({quote_column(name.lower()) for name in names})


def _has_key(names: Sequence[str]) -> str:
    return " OR ".join(f"{key} IS NOT NULL" for key in key_columns(names))


def orphans(check: ReferentialCheck, view: str, reference: str) -> str:
    """Return a subquery with the rows missing in the other dataset; nulls are ignored."""
    pairs = zip(check.columns, check.to_columns or check.columns, strict=True)
    equal = [f"here.{quote_column(own)} = there.{quote_column(other)}" for own, other in pairs]
    present = [f"here.{quote_column(own)} IS NOT NULL" for own in check.columns]
    query = select(
        "*",
        f"{rows_of(view, check.where)} AS here",
        f"LEFT ANTI JOIN {reference} AS there ON {' AND '.join(equal)}",
        f"WHERE {' AND '.join(present)}",
    )
    return f"({query})"
