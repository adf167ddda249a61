"""Which names an expression may use, and what they stand for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from floe.execution.column_lineage.model import ColumnLineage
from floe.execution.column_lineage.relations import (
    Found,
    NamedColumn,
    Relation,
    UnknowableError,
    index_columns,
)

Evaluate = Callable[[exp.Expr, "Environment", "Scope | None"], Relation]


@dataclass(frozen=True)
class Environment:
    """The tables that a query may read by name, and how a query within it is read."""

    tables: Mapping[str, Relation]
    evaluate: Evaluate
    on_missing: "Callable[[exp.Column, Scope], None] | None" = None
    """Called for each column that no table in its scope has."""

    def having(self, name: str, relation: Relation) -> "Environment":
        """Add a table, which hides one of the same name."""
        return replace(self, tables={**self.tables, name.lower(): relation})

    def get(self, name: str) -> Relation:
        """Return a table, an unknown one when nobody has declared it."""
        found = self.tables.get(name.lower())
        return found or Relation(unknown=f"'{name}' is neither an input nor a step")


class Scope:
    """What the expressions of one SELECT see: its tables, its own aliases, then what is around."""

    def __init__(self, environment: Environment, outer: "Scope | None" = None) -> None:
        self.environment = environment
        self.outer = outer
        self.tables: dict[str, Relation] = {}
        self.columns: list[NamedColumn] = []
        """What a star stands for."""
        self.unknown: list[str] = []
        """Why there may be more columns than these."""
        self.rows = Found()
        self.aliases: dict[str, ColumnLineage] = {}
        """Columns of the select list, which later ones may use (Spark's lateral aliases)."""
        self.results: dict[str, ColumnLineage] = {}
        """Columns of the result, which ORDER BY sees before those of the tables."""
        self.windows: dict[str, exp.Expr] = {}
        self._index: dict[str, ColumnLineage] | None = None

    def know(self, tables: Mapping[str, Relation], relation: Relation) -> None:
        """Add tables whose columns can be asked for by name, and what they are together."""
        self.tables |= {name.lower(): table for name, table in tables.items()}
        self.rows.sources.update(relation.rows)
        self.rows.reasons += relation.gaps
        if relation.unknown is not None:
            self.unknown.append(relation.unknown)
            self.rows.reasons.append(relation.unknown)

    @classmethod
    def over(cls, relation: Relation, environment: Environment) -> "Scope":
        """Make the scope of what sees nothing but one table, which has no name."""
        # Spark may let such an expression see more than this, so nothing is reported as missing.
        scope = cls(replace(environment, on_missing=None))
        scope.know({}, relation)
        scope.set_columns(list(relation.columns))
        return scope

    def set_columns(self, columns: list[NamedColumn]) -> None:
        self.columns = columns
        self._index = None

    @property
    def index(self) -> dict[str, ColumnLineage]:
        if self._index is None:
            self._index = index_columns(self.columns)
        return self._index

    def resolve(self, column: exp.Column) -> tuple[ColumnLineage, bool]:
        """Return what a name stands for, and whether it is a whole column or a field within."""
        parts = [part.name for part in column.parts]
        names = [part.lower() for part in parts]
        scope: Scope | None = self
        while scope is not None:
            found = scope._resolve_here(names)
            if found is not None:
                return found
            scope = scope.outer
        if self.environment.on_missing is not None:
            self.environment.on_missing(column, self)
        return ColumnLineage(unknown=f"no input has a column '{'.'.join(parts)}'"), True

    def _resolve_here(self, names: Sequence[str]) -> tuple[ColumnLineage, bool] | None:
        found = self._resolve_in_table(names)
        if found is not None:
            return found
        first = names[0]
        for known in (self.results, self.index, self.aliases):
            if first in known:
                return known[first], len(names) == 1
        if self.unknown and not self._is_qualified_outside(names):
            return ColumnLineage(unknown=self.unknown[0]), True
        return None

    def _resolve_in_table(self, names: Sequence[str]) -> tuple[ColumnLineage, bool] | None:
        for length in range(len(names) - 1, 0, -1):
            table = self.tables.get(".".join(names[:length]))
            if table is None:
                continue
            if table.unknown is not None:
                return ColumnLineage(unknown=table.unknown), True
            if names[length] in table.by_name:
                return table.by_name[names[length]], length == len(names) - 1
        return None

    def _is_qualified_outside(self, names: Sequence[str]) -> bool:
        """Tell whether a name begins with a table that only a query around this one has."""
        scope = self.outer
        while scope is not None:
            if len(names) > 1 and names[0] in scope.tables:
                return True
            scope = scope.outer
        return False

    def star(self, qualifier: str = "") -> Sequence[NamedColumn]:
        """Return what `*` or `t.*` stands for."""
        if not qualifier:
            if self.unknown:
                raise UnknowableError(self.unknown[0])
            return self.columns
        table = self.tables.get(qualifier.lower())
        if table is None:
            raise UnknowableError(f"the fields of '{qualifier}' are not known")
        if table.unknown is not None:
            raise UnknowableError(table.unknown)
        return table.columns
