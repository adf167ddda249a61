"""Where the columns of an output come from, and what else decides its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple


class Use(StrEnum):
    """How a column is used to make another, in OpenLineage's words; ROWS is floe's own."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"
    ROWS = "ROWS"
    """Only the rows of a table count, as in count(*) or a cross join. Its column is `*`."""

    @property
    def direct(self) -> bool:
        """Whether values flow from one column to the other; otherwise it only decides on them."""
        return self in _DIRECT

    @property
    def kind(self) -> str:
        """The catalog's word: DIRECT, AGGREGATE, or the value of an indirect use."""
        if self in (Use.AGGREGATION, Use.GROUP_BY):
            return "AGGREGATE"
        return "DIRECT" if self.direct else self.value


_DIRECT = (Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION)


def _through(outer: Use, inner: Use) -> Use:
    if not outer.direct:
        return outer
    if not inner.direct:
        return inner
    return max(outer, inner, key=_DIRECT.index)


THROUGH = {(outer, inner): _through(outer, inner) for outer in Use for inner in Use}
"""What use of a column one makes who uses, in one way, what was made of it in another."""


ALL_COLUMNS = "*"


class Source(NamedTuple):
    """A column of an input, and how it is used; `*` stands for its rows as a whole."""

    alias: str
    column: str
    use: Use


@dataclass(frozen=True)
class ColumnLineage:
    """What a column is made from. Without sources it is known to come from none."""

    sources: frozenset[Source] = frozenset()
    unknown: str | None = None
    """Why it cannot be known what else it is made from."""


@dataclass(frozen=True)
class OutputLineage:
    """The lineage of one output."""

    columns: Mapping[str, ColumnLineage] = field(default_factory=dict)
    rows: frozenset[Source] = frozenset()
    """What decides which rows there are, and so influences every column."""
    unknown: str | None = None
    """Why it cannot be known which columns there are."""
    gaps: tuple[str, ...] = ()
    """Why it cannot be known what else decides on its rows."""


def rows_of(alias: str) -> frozenset[Source]:
    """Return what decides on the rows of an input: that it has them."""
    return frozenset({Source(alias, ALL_COLUMNS, Use.ROWS)})


def drop_known_rows(lineage: OutputLineage) -> OutputLineage:
    """Keep `*` only for inputs of which no column is used.

    Where something is unknown, any input may be used there: then no `*` is kept.
    """
    parts = [lineage.rows, *(column.sources for column in lineage.columns.values())]
    used = {one.alias for part in parts for one in part if one.column != ALL_COLUMNS}
    columns = lineage.columns.values()
    uncertain = bool(lineage.unknown or lineage.gaps or any(one.unknown for one in columns))

    def kept(part: frozenset[Source]) -> frozenset[Source]:
        return frozenset(
            one for one in part if one.column != ALL_COLUMNS or not (uncertain or one.alias in used)
        )

    return replace(
        lineage,
        columns={
            name: replace(one, sources=kept(one.sources)) for name, one in lineage.columns.items()
        },
        rows=kept(lineage.rows),
    )
