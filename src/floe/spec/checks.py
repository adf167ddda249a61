"""Checks on versions of a dataset, and what happens if they fail."""

import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PlainSerializer, PlainValidator, Tag

from floe.spec.base import SpecModel, only_text, text_schema, value_error
from floe.spec.names import DatasetName, Name
from floe.spec.values import AnyValue, Duration, Share


@dataclass(frozen=True)
class Expectation:
    """The expected result of a SQL check: `= 0`, `>= 100`, `between 1 and 5`."""

    operator: str
    low: float
    high: float | None = None

    def __str__(self) -> str:
        if self.high is not None:
            return f"between {self.low:g} and {self.high:g}"
        return f"{self.operator} {self.low:g}"


_FIGURE = r"(-?[0-9]+(?:\.[0-9]+)?)"
_COMPARISON = re.compile(rf"\s*(=|==|!=|<>|<=|>=|<|>)?\s*{_FIGURE}\s*")
_BETWEEN = re.compile(rf"\s*between\s+{_FIGURE}\s+and\s+{_FIGURE}\s*", re.IGNORECASE)


def parse_expectation(value: str | Expectation) -> Expectation:
    """Read `= 0`, `>= 100`, `between 1 and 5`; a bare number means equality."""
    if isinstance(value, Expectation):
        return value
    if match := _BETWEEN.fullmatch(value):
        return Expectation("between", float(match[1]), float(match[2]))
    if match := _COMPARISON.fullmatch(value):
        operator = {None: "=", "==": "=", "<>": "!="}.get(match[1], match[1])
        return Expectation(operator, float(match[2]))
    hint = 'Write a comparison, such as "= 0", ">= 100" or "between 1 and 5".'
    raise value_error(f"'{value}' is not an expectation", hint, "= 0")


Expected = Annotated[
    Expectation,
    PlainValidator(only_text(parse_expectation, Expectation)),
    PlainSerializer(str, when_used="json"),
    text_schema("= 0", "A comparison: = 0, >= 100, between 1 and 5."),
]


Columns = Annotated[tuple[str, ...], Field(min_length=1)]


class Check(SpecModel):
    """The keys that all kinds of checks have in common."""

    name: Name | None = None
    """Name of the check; by default derived from its kind and columns."""
    description: str = ""
    """Why the check exists."""
    on_fail: Literal["reject", "warn"] = "reject"
    """Whether a failure rejects the version or only warns."""
    where: str | None = None
    """A SQL condition: only matching rows are checked."""
    samples: Annotated[int, Field(ge=0, le=1000)] = 5
    """Number of failing rows to keep as samples."""

    @property
    def label(self) -> str:
        """The name of the check; by default its kind and columns."""
        columns = getattr(self, "columns", None) or (getattr(self, "column", None),)
        parts = [str(getattr(self, "kind", "check")), *filter(None, columns)]
        return self.name or "_".join(parts)


class RowCountCheck(Check):
    """The version has a plausible number of rows."""

    kind: Literal["row_count"]
    """`row_count`"""
    min: Annotated[int, Field(ge=0)] | None = None
    """Minimum number of rows."""
    max: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of rows."""
    max_change: Share | None = None
    """Maximum deviation from the mean of the last versions, such as 20%."""
    compared_to: Annotated[int, Field(ge=1)] = 5
    """Number of earlier versions that `max_change` compares with."""


class NotNullCheck(Check):
    """The columns have no nulls."""

    kind: Literal["not_null"]
    """`not_null`"""
    columns: Columns
    """The columns."""


class UniqueCheck(Check):
    """No two rows have the same values in the columns."""

    kind: Literal["unique"]
    """`unique`"""
    columns: Columns
    """The columns that together identify a row."""


class AcceptedValuesCheck(Check):
    """A column contains only values from a list."""

    kind: Literal["accepted_values"]
    """`accepted_values`"""
    column: str
    """The column."""
    values: Annotated[tuple[AnyValue, ...], Field(min_length=1)]
    """The accepted values."""


class RangeCheck(Check):
    """A column's values lie within bounds."""

    kind: Literal["range"]
    """`range`"""
    column: str
    """The column."""
    min: AnyValue = None
    """Lowest allowed value: a number or a date."""
    max: AnyValue = None
    """Highest allowed value: a number or a date."""


class ReferentialCheck(Check):
    """Every value of the columns exists in another dataset."""

    kind: Literal["referential"]
    """`referential`"""
    columns: Columns
    """The columns of this dataset."""
    dataset: DatasetName
    """The dataset that must contain the values."""
    to_columns: tuple[str, ...] = ()
    """The columns in that dataset, if their names differ."""


class FreshnessCheck(Check):
    """The newest value of a timestamp column is recent."""

    kind: Literal["freshness"]
    """`freshness`"""
    column: str
    """The timestamp column."""
    max_age: Duration
    """Maximum age of its newest value at the end of the business date."""


class SqlCheck(Check):
    """A query returns the expected number."""

    kind: Literal["sql"] = "sql"
    """`sql`; optional."""
    sql: Annotated[str, Field(min_length=1)]
    """Query that returns one number, or its .sql file; `{dataset}` stands for the version."""
    expect: Expected
    """Expected number: "= 0", ">= 100", "between 1 and 5"."""


def _kind(value: Any) -> str | None:
    """Return the kind of a check; `kind` may be omitted if there is `sql`."""
    if isinstance(value, Check):
        return str(getattr(value, "kind"))  # noqa: B009 - only the subclasses have it
    if not isinstance(value, dict):
        return "sql"
    return value.get("kind") or ("sql" if "sql" in value else None)


AnyCheck = Annotated[
    Annotated[RowCountCheck, Tag("row_count")]
    | Annotated[NotNullCheck, Tag("not_null")]
    | Annotated[UniqueCheck, Tag("unique")]
    | Annotated[AcceptedValuesCheck, Tag("accepted_values")]
    | Annotated[RangeCheck, Tag("range")]
    | Annotated[ReferentialCheck, Tag("referential")]
    | Annotated[FreshnessCheck, Tag("freshness")]
    | Annotated[SqlCheck, Tag("sql")],
    Discriminator(_kind),
]
