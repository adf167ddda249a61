"""Where the columns of an output come from, and what else decides its rows."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple


class Use(StrEnum):
    """How a column is used to make another, in OpenLineage's words."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    WINDOW = "WINDOW"
    JOIN = "JOIN"
    GROUP_BY = "GROUP_BY"
    FILTER = "FILTER"
    SORT = "SORT"

    @property
    def direct(self) -> bool:
        """Whether values flow from one column to the other; otherwise it only decides on them."""
        return self in _DIRECT

    @property
    def kind(self) -> str:
        """The catalog's word: DIRECT, AGGREGATE, FILTER, JOIN, SORT, WINDOW or CONDITIONAL."""
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


class Source(NamedTuple):
    """A column of an input, and how it is used."""

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
