"""What is known of a table while SQL is read: its columns in their order, each with its lineage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from floe.execution.column_lineage.model import THROUGH, ColumnLineage, Source, Use


class UnknowableError(Exception):
    """Something about a table cannot be known; the reason goes into the result."""


class NamedColumn:
    """A column of a relation; one that SQL gives no name has a name of Spark's making."""

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
        """Each column by its name in lower case, as Spark knows it."""
        return index_columns(self.columns)

    def renamed(self, names: Sequence[str]) -> "Relation":
        """Give the columns other names: `as t(a, b)`."""
        if not names or self.unknown is not None:
            return self
        if len(names) != len(self.columns):
            count = f"{len(names)} names for {len(self.columns)} columns"
            return Relation(rows=self.rows, gaps=self.gaps, unknown=f"an alias has {count}")
        pairs = zip(names, self.columns, strict=True)
        return replace(self, columns=tuple(NamedColumn(name, old.lineage) for name, old in pairs))


def index_columns(columns: Iterable[NamedColumn]) -> dict[str, ColumnLineage]:
    """Return columns by their names in lower case; a name that two share stands for neither."""
    found: dict[str, ColumnLineage] = {}
    for column in columns:
        name = column.name.lower()
        if name in found:
            found[name] = ColumnLineage(unknown=f"several columns are called '{column.name}'")
        else:
            found[name] = column.lineage
    return found


class Found:
    """What was found while expressions were read."""

    def __init__(self) -> None:
        self.sources: set[Source] = set()
        self.reasons: list[str] = []

    def add(self, lineage: ColumnLineage, use: Use) -> None:
        """Take in a column that is used in some way."""
        self.add_sources(lineage.sources, use)
        if lineage.unknown is not None:
            self.reasons.append(lineage.unknown)

    def add_sources(self, sources: Iterable[Source], use: Use) -> None:
        if use is Use.IDENTITY:
            self.sources.update(sources)
            return
        for alias, column, inner in sources:
            self.sources.add(Source(alias, column, THROUGH[use, inner]))

    @property
    def gaps(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.reasons))

    def lineage(self) -> ColumnLineage:
        return ColumnLineage(frozenset(self.sources), "; ".join(self.gaps) or None)
