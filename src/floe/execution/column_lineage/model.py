"""Column lineage: sources and uses of columns, relations, and OpenLineage facets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple


class Use(StrEnum):
    """How a column is used to compute another, in OpenLineage's terms plus ROWS."""

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
    """Only the rows of a table matter, as in count(*); its column is `*`."""

    @property
    def direct(self) -> bool:
        """Whether values flow to the other column; otherwise they only influence it."""
        return self in _DIRECT

    @property
    def kind(self) -> str:
        """The kind in the catalog: DIRECT, AGGREGATE, or the value of an indirect use."""
        if self in (Use.AGGREGATION, Use.GROUP_BY):
            return "AGGREGATE"
        return "DIRECT" if self.direct else self.value


_DIRECT = (Use.IDENTITY, Use.TRANSFORMATION, Use.AGGREGATION)


def _combine_uses(outer: Use, inner: Use) -> Use:
    if not outer.direct:
        return outer
    if not inner.direct:
        return inner
    return max(outer, inner, key=_DIRECT.index)


COMBINED_USES = {(outer, inner): _combine_uses(outer, inner) for outer in Use for inner in Use}
"""The use of a source column, for each pair of outer and inner use."""


ALL_COLUMNS = "*"


class Source(NamedTuple):
    """A column of an input and how it is used; `*` stands for the input's rows."""

    alias: str
    column: str
    use: Use


@dataclass(frozen=True)
class ColumnLineage:
    """The sources of a column. Without sources, and not unknown, it has no input."""

    sources: frozenset[Source] = frozenset()
    unknown: str | None = None
    """Why its sources cannot be fully determined."""


@dataclass(frozen=True)
class OutputLineage:
    """The lineage of one output."""

    columns: Mapping[str, ColumnLineage] = field(default_factory=dict)
    rows: frozenset[Source] = frozenset()
    """What determines the rows, and so influences every column."""
    unknown: str | None = None
    """Why its columns cannot be determined."""
    gaps: tuple[str, ...] = ()
    """Why the sources of its rows cannot be fully determined."""


def rows_of(alias: str) -> frozenset[Source]:
    """Return the row sources of an input: its own rows."""
    return frozenset({Source(alias, ALL_COLUMNS, Use.ROWS)})


def drop_known_rows(lineage: OutputLineage) -> OutputLineage:
    """Keep `*` only for inputs without any used column.

    If anything is unknown, it may use any input, so every `*` is dropped.
    """
    parts = [lineage.rows, *(column.sources for column in lineage.columns.values())]
    used = {source.alias for part in parts for source in part if source.column != ALL_COLUMNS}
    columns = lineage.columns.values()
    uncertain = bool(lineage.unknown or lineage.gaps or any(column.unknown for column in columns))

    def without_known(part: frozenset[Source]) -> frozenset[Source]:
        return frozenset(
            source
            for source in part
            if source.column != ALL_COLUMNS or not (uncertain or source.alias in used)
        )

    return replace(
        lineage,
        columns={
            name: replace(column, sources=without_known(column.sources))
            for name, column in lineage.columns.items()
        },
        rows=without_known(lineage.rows),
    )


class UnknowableError(Exception):
    """Lineage cannot be determined; the reason goes into the result."""


class NamedColumn:
    """A column of a relation; `unnamed` if Spark generates its name."""

    __slots__ = ("lineage", "name", "unnamed")

    def __init__(self, name: str, lineage: ColumnLineage, *, unnamed: bool = False) -> None:
        self.name = name
        self.lineage = lineage
        self.unnamed = unnamed


@dataclass(frozen=True)
class Relation:
    """A table, a view, or the result of a query."""

    columns: tuple[NamedColumn, ...] = ()
    rows: frozenset[Source] = frozenset()
    gaps: tuple[str, ...] = ()
    unknown: str | None = None

    @cached_property
    def by_name(self) -> dict[str, ColumnLineage]:
        """The lineage of each column, by its name in lower case."""
        return index_columns(self.columns)

    def renamed(self, names: Sequence[str]) -> "Relation":
        """Rename the columns, as `as t(a, b)` does."""
        if not names or self.unknown is not None:
            return self
        if len(names) != len(self.columns):
            count = f"{len(names)} names for {len(self.columns)} columns"
            return Relation(rows=self.rows, gaps=self.gaps, unknown=f"an alias has {count}")
        pairs = zip(names, self.columns, strict=True)
        return replace(self, columns=tuple(NamedColumn(name, old.lineage) for name, old in pairs))


def index_columns(columns: Iterable[NamedColumn]) -> dict[str, ColumnLineage]:
    """Return columns by name in lower case; a name of several columns is unknown."""
    by_name: dict[str, ColumnLineage] = {}
    for column in columns:
        name = column.name.lower()
        if name in by_name:
            by_name[name] = ColumnLineage(unknown=f"several columns are called '{column.name}'")
        else:
            by_name[name] = column.lineage
    return by_name


class SourceCollector:
    """Collects the sources of expressions, and reasons for unknown ones."""

    def __init__(self) -> None:
        self.sources: set[Source] = set()
        self.reasons: list[str] = []

    def add(self, lineage: ColumnLineage, use: Use) -> None:
        """Add the sources of a column, with how the column is used."""
        self.add_sources(lineage.sources, use)
        if lineage.unknown is not None:
            self.reasons.append(lineage.unknown)

    def add_sources(self, sources: Iterable[Source], use: Use) -> None:
        if use is Use.IDENTITY:
            self.sources.update(sources)
            return
        for alias, column, inner in sources:
            self.sources.add(Source(alias, column, COMBINED_USES[use, inner]))

    @property
    def gaps(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.reasons))

    def lineage(self) -> ColumnLineage:
        return ColumnLineage(frozenset(self.sources), "; ".join(self.gaps) or None)


def to_facet(
    traced: OutputLineage, datasets: Mapping[str, tuple[str, str]]
) -> dict[str, Any] | None:
    """Return the content of a columnLineage facet, or None if nothing is known.

    `datasets` maps the alias of each input to its namespace and name. Columns with unknown sources
    are left out, because the facet cannot express that. A column without an input, such as a
    literal, has no input fields.
    """
    fields = {
        name: {"inputFields": _input_fields(lineage.sources, datasets)}
        for name, lineage in traced.columns.items()
        if lineage.unknown is None
    }
    rows = _input_fields(traced.rows, datasets)
    if not fields and not rows:
        return None
    return {"fields": fields, "dataset": rows} if rows else {"fields": fields}


def _input_fields(
    sources: Iterable[Source], datasets: Mapping[str, tuple[str, str]]
) -> list[dict[str, Any]]:
    """Return one sorted entry per source column, with all its uses."""
    uses: defaultdict[tuple[str, str, str], set[Use]] = defaultdict(set)
    for alias, column, use in sources:
        # Two inputs may be two versions of one dataset.
        uses[(*datasets[alias], column)].add(use)
    return [
        {
            "namespace": namespace,
            "name": name,
            "field": column,
            "transformations": [_transformation(use) for use in sorted(column_uses)],
        }
        for (namespace, name, column), column_uses in sorted(uses.items())
    ]


def _transformation(use: Use) -> dict[str, Any]:
    return {"type": "DIRECT" if use.direct else "INDIRECT", "subtype": use.value}
