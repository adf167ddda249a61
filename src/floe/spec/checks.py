"""Checks on a version of a dataset: what must hold, and what happens when it does not."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from floe.spec.base import SpecModel
from floe.spec.expectations import Expected
from floe.spec.names import DatasetName, Name
from floe.spec.values import AnyValue, Duration, Share

Columns = Annotated[tuple[str, ...], Field(min_length=1)]


class Check(SpecModel):
    """What every kind of check has."""

    name: Name | None = None
    """The name of the check; without one it is named after its kind and columns."""
    description: str = ""
    """Why the check exists."""
    on_fail: Literal["reject", "warn"] = "reject"
    """Whether a failure rejects the version or only warns."""
    where: str | None = None
    """A SQL condition: only rows that meet it are checked."""
    samples: Annotated[int, Field(ge=0, le=1000)] = 5
    """How many failing rows to keep as samples."""

    @property
    def label(self) -> str:
        """The name of the check: as given, else its kind and what it looks at."""
        columns = getattr(self, "columns", None) or (getattr(self, "column", None),)
        parts = [str(getattr(self, "kind", "check")), *filter(None, columns)]
        return self.name or "_".join(parts)


class RowCountCheck(Check):
    """The version has a plausible number of rows."""

    kind: Literal["row_count"]
    """`row_count`"""
    min: Annotated[int, Field(ge=0)] | None = None
    """The fewest rows it may have."""
    max: Annotated[int, Field(ge=0)] | None = None
    """The most rows it may have."""
    max_change: Share | None = None
    """How far the count may be from the mean of the last versions, such as 20%."""
    compared_to: Annotated[int, Field(ge=1)] = 5
    """How many earlier versions `max_change` looks at."""


class NotNullCheck(Check):
    """Columns hold a value in every row."""

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
    """A column holds only values of a list."""

    kind: Literal["accepted_values"]
    """`accepted_values`"""
    column: str
    """The column."""
    values: Annotated[tuple[AnyValue, ...], Field(min_length=1)]
    """The values it may hold."""


class RangeCheck(Check):
    """A column's values lie within bounds."""

    kind: Literal["range"]
    """`range`"""
    column: str
    """The column."""
    min: AnyValue = None
    """The lowest value allowed: a number or a date."""
    max: AnyValue = None
    """The highest value allowed: a number or a date."""


class ReferentialCheck(Check):
    """Every value of the columns exists in another dataset."""

    kind: Literal["referential"]
    """`referential`"""
    columns: Columns
    """The columns of this dataset."""
    dataset: DatasetName
    """The dataset that must hold the values."""
    to_columns: tuple[str, ...] = ()
    """The columns there, when they are called differently."""


class FreshnessCheck(Check):
    """The newest value of a timestamp column is recent."""

    kind: Literal["freshness"]
    """`freshness`"""
    column: str
    """The timestamp column."""
    max_age: Duration
    """How old its newest value may be at the end of the business date."""


class SqlCheck(Check):
    """A query gives the number that is expected."""

    kind: Literal["sql"] = "sql"
    """`sql`; may be left out."""
    sql: Annotated[str, Field(min_length=1)]
    """A query that gives one number, or the .sql file that holds it; `{dataset}` is the version."""
    expect: Expected
    """What the number must be: "= 0", ">= 100", "between 1 and 5"."""


def _kind(value: Any) -> str | None:
    """A check that gives SQL need not say that it is a SQL check."""
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
