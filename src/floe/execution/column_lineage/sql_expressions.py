"""SQL expressions: resolve column names, and find how each column is used.

A CASE or IF uses the columns of its conditions as CONDITIONAL and those of its results directly.
A window function uses its PARTITION BY and ORDER BY columns as WINDOW. Everything inside a filter
or a join condition has that use, however deep.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from floe.execution.column_lineage.model import (
    ColumnLineage,
    NamedColumn,
    Relation,
    SourceCollector,
    UnknowableError,
    Use,
    index_columns,
)

Evaluate = Callable[[exp.Expr, "Environment", "Scope | None"], Relation]


@dataclass(frozen=True)
class Environment:
    """The tables that a query can read by name, and how to read its subqueries."""

    tables: Mapping[str, Relation]
    evaluate: Evaluate
    on_missing: "Callable[[exp.Column, Scope], None] | None" = None
    """Called for each column that no table in scope has."""

    def with_table(self, name: str, relation: Relation) -> "Environment":
        """Return an environment with another table, which hides any of the same name."""
        return replace(self, tables={**self.tables, name.lower(): relation})

    def get(self, name: str) -> Relation:
        """Return a table; its columns are unknown if it is neither input nor step."""
        relation = self.tables.get(name.lower())
        return relation or Relation(unknown=f"'{name}' is neither an input nor a step")


class Scope:
    """The names visible in one SELECT: its tables, its aliases, then outer queries."""

    def __init__(self, environment: Environment, outer: "Scope | None" = None) -> None:
        self.environment = environment
        self.outer = outer
        self.tables: dict[str, Relation] = {}
        self.columns: list[NamedColumn] = []
        """The columns of `*`."""
        self.unknown: list[str] = []
        """Why there may be further columns."""
        self.rows = SourceCollector()
        self.aliases: dict[str, ColumnLineage] = {}
        """Columns of the select list that later ones can use (Spark's lateral aliases)."""
        self.results: dict[str, ColumnLineage] = {}
        """Columns of the result, which ORDER BY prefers to those of the tables."""
        self.windows: dict[str, exp.Expr] = {}
        self._index: dict[str, ColumnLineage] | None = None

    def add_tables(self, tables: Mapping[str, Relation], relation: Relation) -> None:
        """Add tables by name, and the relation that they form together."""
        self.tables |= {name.lower(): table for name, table in tables.items()}
        self.rows.sources.update(relation.rows)
        self.rows.reasons += relation.gaps
        if relation.unknown is not None:
            self.unknown.append(relation.unknown)
            self.rows.reasons.append(relation.unknown)

    @classmethod
    def over(cls, relation: Relation, environment: Environment) -> "Scope":
        """Return a scope with a single unnamed table."""
        # Spark may resolve more names here, so nothing is reported as missing.
        scope = cls(replace(environment, on_missing=None))
        scope.add_tables({}, relation)
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
        """Return a name's lineage, and whether it is a whole column or a struct field."""
        parts = [part.name for part in column.parts]
        names = [part.lower() for part in parts]
        scope: Scope | None = self
        while scope is not None:
            resolved = scope._resolve_here(names)
            if resolved is not None:
                return resolved
            scope = scope.outer
        if self.environment.on_missing is not None:
            self.environment.on_missing(column, self)
        return ColumnLineage(unknown=f"no input has a column '{'.'.join(parts)}'"), True

    def _resolve_here(self, names: Sequence[str]) -> tuple[ColumnLineage, bool] | None:
        resolved = self._resolve_in_table(names)
        if resolved is not None:
            return resolved
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
        """Tell whether a name starts with a table of an outer query."""
        scope = self.outer
        while scope is not None:
            if len(names) > 1 and names[0] in scope.tables:
                return True
            scope = scope.outer
        return False

    def star(self, qualifier: str = "") -> Sequence[NamedColumn]:
        """Return the columns of `*` or `t.*`."""
        if not qualifier:
            if self.unknown:
                raise UnknowableError(self.unknown[0])
            return self.columns
        table = self.tables.get(qualifier.lower())
        if table is None:
            raise UnknowableError(f"the fields of '{qualifier}' are unknown")
        if table.unknown is not None:
            raise UnknowableError(table.unknown)
        return table.columns


# Spark's aggregates that the parser does not recognise.
AGGREGATES = frozenset(
    {
        *("every", "some", "mean", "std", "try_avg", "try_sum", "product", "histogram_numeric"),
        *("hll_sketch_agg", "hll_union_agg", "count_min_sketch", "theta_sketch_agg"),
        *("theta_union_agg", "theta_intersection_agg", "kll_sketch_agg_bigint"),
    }
)
# The parser treats these as aggregates, but they return the value of one row.
SINGLE_ROW_FUNCTIONS = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
# Nodes that do not change their content.
_WRAPPERS = (exp.Alias, exp.Paren)
# Nodes that contain no columns, such as names of lambda variables and struct fields.
_LEAVES = (exp.Identifier, exp.Literal, exp.Placeholder, exp.DataType, exp.Var, exp.Star)

Part = tuple[exp.Expr, Use]


def lineage_of(expression: exp.Expr, scope: Scope) -> ColumnLineage:
    """Return the sources of an expression's value."""
    collected = SourceCollector()
    collect(expression, scope, Use.IDENTITY, collected)
    return collected.lineage()


def collect(expression: exp.Expr, scope: Scope, use: Use, collected: SourceCollector) -> None:
    """Add the columns of an expression that is used in the given way."""
    # A stack instead of recursion: a condition may be a chain of thousands of ORs.
    stack: list[Part] = [(expression, use)]
    while stack:
        node, use = stack.pop()
        if isinstance(node, exp.Column):
            _collect_column(node, scope, use, collected)
        elif isinstance(node, exp.Query):
            _collect_query(node, scope, use, collected)
        elif isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            # EXISTS depends only on the rows, not on the selected columns.
            _collect_rows(_evaluate(node.this, scope), use, collected)
        elif isinstance(node, _LEAVES):
            pass
        else:
            stack.extend(_parts(node, scope, use, collected))


def _collect_column(node: exp.Column, scope: Scope, use: Use, collected: SourceCollector) -> None:
    if isinstance(node.this, exp.Star):  # count(t.*), struct(t.*)
        for column in scope.star(node.table):
            collected.add(column.lineage, _transformed(use))
        return
    lineage, whole = scope.resolve(node)
    collected.add(lineage, use if whole else _transformed(use))


def _collect_query(node: exp.Query, scope: Scope, use: Use, collected: SourceCollector) -> None:
    relation = _evaluate(node, scope)
    for column in relation.columns:
        collected.add(column.lineage, use)
    # The rows of the query determine its value.
    _collect_rows(relation, use, collected)


def _collect_rows(relation: Relation, use: Use, collected: SourceCollector) -> None:
    collected.add_sources(relation.rows, use)
    collected.reasons += relation.gaps
    if relation.unknown is not None:
        collected.reasons.append(relation.unknown)


def _evaluate(query: exp.Query, scope: Scope) -> Relation:
    return scope.environment.evaluate(query, scope.environment, scope)


def _parts(node: exp.Expr, scope: Scope, use: Use, collected: SourceCollector) -> Iterator[Part]:
    """Yield the parts of an expression, and how each is used."""
    if isinstance(node, _WRAPPERS):
        yield node.this, use
    elif isinstance(node, exp.Case | exp.If):
        yield from _branches(node, use)
    elif isinstance(node, exp.Window):
        yield from _window(node, scope, use)
    elif isinstance(node, exp.Filter):
        yield node.this, use
        yield node.expression, _indirect(use, Use.CONDITIONAL)
    else:
        inner = _aggregated(use) if _is_aggregate(node) else _transformed(use)
        for part in node.iter_expressions():
            if isinstance(part, exp.Star) and not isinstance(node, exp.Count):
                for column in scope.star():  # struct(*)
                    collected.add(column.lineage, inner)
            else:
                yield part, inner


def _branches(node: exp.Case | exp.If, use: Use) -> Iterator[Part]:
    condition = _indirect(use, Use.CONDITIONAL)
    if node.this is not None:
        yield node.this, condition
    for branch in node.args.get("ifs") or [node]:
        if branch is not node:
            yield branch.this, condition
        if branch.args.get("true") is not None:
            yield branch.args["true"], _transformed(use)
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        yield other, _transformed(use)


def _window(node: exp.Window, scope: Scope, use: Use) -> Iterator[Part]:
    if not isinstance(node.this, exp.Identifier):  # that is the definition of a named window
        yield node.this, _transformed(use)
    inner = _indirect(use, Use.WINDOW)
    for part in (*(node.args.get("partition_by") or ()), node.args.get("order")):
        if part is not None:
            yield part, inner
    name = node.args.get("alias")
    named = scope.windows.get(name.name.lower()) if name is not None else None
    if named is not None and named is not node:
        yield named, use


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in AGGREGATES
    return isinstance(node, exp.AggFunc | exp.WithinGroup) and not isinstance(
        node, SINGLE_ROW_FUNCTIONS
    )


def has_aggregate(expression: exp.Expr) -> bool:
    """Tell whether an expression contains an aggregate that is not a window function."""
    return any(
        _is_aggregate(node) and not isinstance(node.parent, exp.Window)
        for node in expression.walk(prune=lambda node: isinstance(node, exp.Query))
    )


def _transformed(use: Use) -> Use:
    return Use.TRANSFORMATION if use is Use.IDENTITY else use


def _aggregated(use: Use) -> Use:
    return Use.AGGREGATION if use.direct else use


def _indirect(use: Use, indirect_use: Use) -> Use:
    return indirect_use if use.direct else use
