"""Queries on a Spark session: frames as tables, bound values, plans and metrics.

`query` reads other frames by name without registering them and without calls to the server.
pyspark's `spark.sql(query, **frames)` does the same for names in braces, but calls the server once
for each. A contract test checks this against the pinned version of pyspark.
"""

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from floe.errors import FloeError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


def query(
    spark: "SparkSession",
    sql: str,
    params: Mapping[str, Any] | None = None,
    frames: Mapping[str, "DataFrame"] | None = None,
    counters: Sequence[Any] = (),
) -> "DataFrame":
    """Return the frame of a query that can use parameters, and frames by their names.

    The server creates views of the frames while it plans, and drops them again. So a frame that is
    itself such a query must not use another frame of the same name. `counters` are observations
    nested in the frames or views that the query reads.
    """
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.functions import lit
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    class Query(SQL):
        """A query that passes on the observations of the frames that it reads."""

        @property
        def observations(self) -> dict[str, Any]:
            observed = {str(counter._name): counter for counter in counters}
            for view in views:
                observed |= view.observations
            return observed

    named = {name: lit(value) for name, value in (params or {}).items()}
    views = [SubqueryAlias(frame._plan, name) for name, frame in _named_in(sql, frames)]
    return DataFrame(Query(sql, [], named, views), spark)


def _named_in(sql: str, frames: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """Return the frames that a query uses; all of them if it cannot be parsed."""
    named = tables_in(sql)
    given = (frames or {}).items()
    return [(name, frame) for name, frame in given if not named or name.lower() in named]


@lru_cache(maxsize=512)
def tables_in(sql: str) -> frozenset[str]:
    """Return a query's table names in lower case; empty if it cannot be parsed."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError:
        return frozenset()
    return frozenset(table.name.lower() for table in parsed.find_all(exp.Table))


FIELDS = "spark.sql.debug.maxToStringFields"
ALL_FIELDS = "100000"


def explain(spark: "SparkSession", frame: "DataFrame") -> str:
    """Return the EXPLAIN EXTENDED text of a frame, with all columns of wide tables."""
    spark.conf.set(FIELDS, ALL_FIELDS)
    try:
        # The public method prints it.
        connected: Any = frame
        return str(connected._explain_string(extended=True))
    finally:
        spark.conf.unset(FIELDS)


# Metric names of operators, for files and for Iceberg.
SUMMED = {
    "scanTime": "scanMilliseconds",
    "totalPlanningDuration": "planningMilliseconds",
    "numFiles": "filesRead",
    "resultDataFiles": "filesRead",
    "filesSize": "bytesRead",
    "totalDataFileSize": "bytesRead",
    "shuffleBytesWritten": "shuffleBytes",
    "spillSize": "spillBytes",
}


def measures_of(frame: "DataFrame") -> dict[str, int]:
    """Return the metrics of a fetched frame, summed over its operators."""
    info: Any = frame.executionInfo
    if info is None or info.metrics is None:
        return {}
    _, nodes = info.metrics.extract_graph()
    return sum_up((metric.name, metric.value) for node in nodes.values() for metric in node.metrics)


def sum_up(measured: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Add up the known metrics; metrics that no operator reported are left out."""
    sums: dict[str, int] = {}
    for name, value in measured:
        if name in SUMMED:
            sums[SUMMED[name]] = sums.get(SUMMED[name], 0) + int(value)
    return sums


BIGINT = range(-(2**63), 2**63)

_PLACEHOLDER = re.compile(r"%(%|s)")
_INSERT = re.compile(
    r"(?P<head>\s*(?:/\*.*?\*/)?\s*insert\s+into\s+\S+)\s+values\s*"
    r"(?P<rows>\(.*\))\s*(?P<tail>(?:/\*.*?\*/)?)\s*",
    re.DOTALL | re.IGNORECASE,
)
_CAST = "cast(%s as "


class BindingError(FloeError):
    """The values do not match the placeholders of a statement, or cannot be bound."""


def run_bound(spark: "SparkSession", sql: str, bindings: Sequence[Any]) -> "DataFrame":
    """Run a statement with a `%s` placeholder for each value; return its result."""
    sql = sql.strip().removesuffix(";")
    insert = _as_insert(sql, len(bindings))
    if insert is not None:
        return _insert_rows(spark, insert, bindings)
    statement, wanted = _with_markers(sql)
    if wanted != len(bindings):
        raise BindingError(
            f"The statement has {wanted} placeholders (%s), but got {len(bindings)} values"
        )
    return spark.sql(statement, args=[parameter(value) for value in bindings])


def parameter(value: Any) -> Any:
    """Convert a value to one that Spark accepts, without loss."""
    if isinstance(value, datetime):
        # As text, because pyspark would interpret it in this machine's time zone.
        return value.isoformat(sep=" ")
    if value is None or isinstance(value, bool | float | str | date):
        return value
    if isinstance(value, int):
        return value if value in BIGINT else Decimal(value)
    if isinstance(value, Decimal):
        # Not in scientific notation, which loses the scale.
        return Decimal(f"{value:f}") if value.is_finite() else float(value)
    raise BindingError(
        f"A value of type {type(value).__name__} cannot be bound to a statement. Pass it as text "
        "and cast it in the statement"
    )


def as_text(value: Any) -> str | None:
    """Convert a value to text that Spark can cast back."""
    bound = parameter(value)
    if bound is None or isinstance(bound, str):
        return bound
    if isinstance(bound, bool):
        return str(bound).lower()
    return f"{bound:f}" if isinstance(bound, Decimal) else str(bound)


def _as_insert(sql: str, values: int) -> tuple[str, str, str] | None:
    """Split an INSERT whose rows are identical casts into head, first row and tail.

    Spark's parser takes minutes for thousands of rows in a VALUES clause; inserting them as a frame
    avoids that.
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
    names = [f"c{index}" for index in range(row.count("%s"))]
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
    """Replace `%s` by `?` and `%%` by `%`; return the text and the number of markers."""
    count = 0

    def replace(match: re.Match[str]) -> str:
        nonlocal count
        if match.group(1) == "%":
            return "%"
        count += 1
        return "?"

    return _PLACEHOLDER.sub(replace, sql), count


class Counted:
    """A frame that counts its rows, and other measures, while it is written."""

    def __init__(self, frame: "DataFrame", **measures: str) -> None:
        from pyspark.sql.connect import functions as F  # noqa: N812
        from pyspark.sql.connect.observation import Observation

        self._source = frame
        self._observation = cast("Any", Observation())
        self._measures = {"rows": "count(1)", **measures}
        columns = [F.expr(sql).alias(name) for name, sql in self._measures.items()]
        self.frame: DataFrame = frame.observe(self._observation, *columns)

    @property
    def measured(self) -> dict[str, Any]:
        """The measured values; empty until the frame is written."""
        return dict(self._observation.get)

    @property
    def rows(self) -> int:
        """The number of rows; counted again if Spark's answer lacks the measures."""
        return int(self.measured_in(self._source)["rows"])

    def measured_in(self, written: "DataFrame") -> dict[str, Any]:
        """Return the measured values; if Spark's answer lacks them, query `written`."""
        if measured := self.measured:
            return measured
        columns = [f"{sql} AS {name}" for name, sql in self._measures.items()]
        (row,) = written.selectExpr(*columns).collect()
        return dict(row.asDict())
