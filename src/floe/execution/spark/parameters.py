"""Run a statement whose values come beside its text, without loss and without quoting."""

import re
import uuid
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

BIGINT = range(-(2**63), 2**63)

_PLACEHOLDER = re.compile(r"%(%|s)")
_INSERT = re.compile(
    r"(?P<head>\s*(?:/\*.*?\*/)?\s*insert\s+into\s+\S+)\s+values\s*"
    r"(?P<rows>\(.*\))\s*(?P<tail>(?:/\*.*?\*/)?)\s*",
    re.DOTALL | re.IGNORECASE,
)
_CAST = "cast(%s as "


class BindingError(FloeError):
    """A statement and the values that come with it do not fit."""


def run_bound(spark: "SparkSession", sql: str, bindings: Sequence[Any]) -> "DataFrame":
    """Run a statement with `%s` for each value, and return its result."""
    sql = sql.strip().removesuffix(";")
    insert = _as_insert(sql, len(bindings))
    if insert is not None:
        return _insert_rows(spark, insert, bindings)
    statement, wanted = _with_markers(sql)
    if wanted != len(bindings):
        raise BindingError(f"A statement has {wanted} placeholders (%s) and {len(bindings)} values")
    return spark.sql(statement, args=[parameter(value) for value in bindings])


def parameter(value: Any) -> Any:
    """Return a value as Spark takes it, without loss."""
    if isinstance(value, datetime):
        # As text: pyspark would read it as a time in the zone of this machine.
        return value.isoformat(sep=" ")
    if value is None or isinstance(value, bool | float | str | date):
        return value
    if isinstance(value, int):
        return value if value in BIGINT else Decimal(value)
    if isinstance(value, Decimal):
        # Not in scientific notation, which has no scale.
        return Decimal(f"{value:f}") if value.is_finite() else float(value)
    raise BindingError(
        f"A value of type {type(value).__name__} cannot be bound to a statement. Pass it as text "
        "and cast it in the statement"
    )


def as_text(value: Any) -> str | None:
    """Return a value as the text that Spark casts back to it."""
    bound = parameter(value)
    if bound is None or isinstance(bound, str):
        return bound
    if isinstance(bound, bool):
        return str(bound).lower()
    return f"{bound:f}" if isinstance(bound, Decimal) else str(bound)


def _as_insert(sql: str, values: int) -> tuple[str, str, str] | None:
    """Split an insert of equal rows of casts into its head, its first row and its tail.

    Spark's parser takes minutes for thousands of rows in a VALUES clause; as a frame they take
    none of its time.
    """
    match = _INSERT.fullmatch(sql)
    row = _first_row(match["rows"]) if match else ""
    width = row.count("%s")
    if match is None or not width or row.count(_CAST) != width:
        return None
    same = match["rows"].count(row)
    rest = match["rows"].replace(row, "")
    if same * width != values or rest.strip(" \t\r\n,"):
        return None
    return match["head"], row, match["tail"]


def _first_row(rows: str) -> str:
    """Return the text up to the parenthesis that closes the first one."""
    depth = 0
    for position, letter in enumerate(rows):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return rows[: position + 1]
    return ""


def _insert_rows(
    spark: "SparkSession", insert: tuple[str, str, str], bindings: Sequence[Any]
) -> "DataFrame":
    head, row, tail = insert
    names = [f"c{number}" for number in range(row.count("%s"))]
    cells = iter([as_text(value) for value in bindings])
    rows = list(zip(*[cells] * len(names), strict=True))
    columns = iter(names)
    casts = _PLACEHOLDER.sub(lambda match: next(columns), row.strip()[1:-1])
    view = f"floe_{uuid.uuid4().hex}"
    frame = spark.createDataFrame(rows, ", ".join(f"{name} string" for name in names))
    frame.createTempView(view)
    try:
        return spark.sql(f"{head} select {casts} from {view} {tail}")  # noqa: S608
    finally:
        spark.catalog.dropTempView(view)


def _with_markers(sql: str) -> tuple[str, int]:
    """Write `?` for `%s` and `%` for `%%`; return the text and how many markers it has."""
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1) == "%":
            return "%"
        count += 1
        return "?"

    return _PLACEHOLDER.sub(replace, sql), count
