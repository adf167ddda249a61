"""The FROM clause: tables, subqueries, joins, generators, PIVOT and UNPIVOT."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from floe.execution.column_lineage.model import (
    ColumnLineage,
    NamedColumn,
    Relation,
    SourceCollector,
    UnknowableError,
    Use,
)
from floe.execution.column_lineage.sql_expressions import Environment, Scope, collect

NOTHING = ColumnLineage()


def read_tables(node: exp.Expr, environment: Environment, outer: Scope | None) -> Scope:
    """Return the scope of a SELECT: its FROM, joins and lateral views."""
    scope = Scope(environment, outer)
    start = node.args.get("from_")
    if start is not None:
        _add(scope, start.this)
    for join in node.args.get("joins") or ():
        _join(scope, join)
    for lateral in node.args.get("laterals") or ():
        _add(scope, lateral)
    return scope


def _add(scope: Scope, node: exp.Expr) -> None:
    tables, relation = _side(scope, node)
    scope.add_tables(tables, relation)
    scope.set_columns([*scope.columns, *relation.columns])


def _side(scope: Scope, node: exp.Expr) -> tuple[dict[str, Relation], Relation]:
    """Return one side of a join: its tables by name, and the whole relation."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        inner = Scope(scope.environment, scope.outer)
        _add(inner, node.this)
        for join in node.this.args.get("joins") or ():
            _join(inner, join)
        # The tables of (a join b) keep their names, unless the whole has an alias.
        return ({node.alias: _whole(inner)} if node.alias else inner.tables), _whole(inner)
    names, relation = _read(scope, node)
    return dict.fromkeys(names, relation), relation


def _read(scope: Scope, node: exp.Expr) -> tuple[Sequence[str], Relation]:
    """Return the names of a table in this query, and its relation."""
    relation = _relation(scope, node).renamed(_column_names(node))
    names = _named(node)
    for pivot in node.args.get("pivots") or ():
        relation = apply_pivot(relation, pivot, scope.environment).renamed(_column_names(pivot))
        names = [pivot.alias] if pivot.alias else names
    return names, relation


def _named(node: exp.Expr) -> list[str]:
    if node.alias:
        return [node.alias]
    return [node.name, _full_name(node)] if isinstance(node, exp.Table) else []


def _full_name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts)


def _relation(scope: Scope, node: exp.Expr) -> Relation:
    environment = scope.environment
    if isinstance(node, exp.Values):
        return _values(node, scope)
    if isinstance(node, exp.Table | exp.Lateral) and isinstance(node.this, exp.Func):
        return _generated(node.this, _column_names(node), scope)
    if isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
        return environment.evaluate(node.this, environment, scope)
    if isinstance(node, exp.Table):
        return environment.get(_full_name(node))
    if isinstance(node, exp.Query):
        return environment.evaluate(node, environment, scope.outer)
    return Relation(unknown=f"the columns of {node.key} are unknown")


def _whole(scope: Scope) -> Relation:
    unknown = scope.unknown[0] if scope.unknown else None
    columns = () if unknown else tuple(scope.columns)
    return Relation(columns, frozenset(scope.rows.sources), scope.rows.gaps, unknown)


def _column_names(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [column.name for column in alias.args.get("columns") or ()] if alias else []


def _values(node: exp.Values, scope: Scope) -> Relation:
    """Return the relation of VALUES: mostly literals; a lateral one may use columns."""
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = []
    for index in range(width):
        collected = SourceCollector()
        for row in node.expressions:
            value = row.expressions[index] if isinstance(row, exp.Tuple) else row
            collect(value, scope, Use.IDENTITY, collected)
        columns.append(NamedColumn(f"col{index + 1}", collected.lineage()))
    return Relation(tuple(columns))


def _generated(function: exp.Expr, names: Sequence[str], scope: Scope) -> Relation:
    """Return the relation of a generator: each column depends on all arguments."""
    called = function.name if isinstance(function, exp.Anonymous) else function.key
    if called.lower() == "range":
        return Relation((NamedColumn("id", NOTHING),))
    if not names:
        return Relation(unknown=f"the columns of {called} have no names. Name them: as t(a, b)")
    collected = SourceCollector()
    collect(function, scope, Use.IDENTITY, collected)
    return Relation(tuple(NamedColumn(name, collected.lineage()) for name in names))


def _join(scope: Scope, join: exp.Join) -> None:
    if join.args.get("pivots") or join.this.args.get("pivots"):
        # The parser does not tell whether it applies to the join or to its right side.
        raise UnknowableError("a pivot follows a join. Put its input in parentheses")
    tables, right = _side(scope, join.this)
    left, unknown = list(scope.columns), list(scope.unknown)
    scope.add_tables(tables, right)
    shared = _shared(scope, join, left, right)
    scope.set_columns(_joined(join, left, right, shared))
    condition = join.args.get("on")
    if condition is not None:
        collect(condition, scope, Use.JOIN, scope.rows)
    if join.kind in ("SEMI", "ANTI"):
        _hide(scope, tables)
        scope.set_columns(left)
        scope.unknown = unknown


def _hide(scope: Scope, names: Iterable[str]) -> None:
    """Remove the right side of a semi or anti join from the scope."""
    for name in names:
        scope.tables.pop(name.lower(), None)


def _shared(
    scope: Scope, join: exp.Join, left: Sequence[NamedColumn], right: Relation
) -> dict[str, tuple[ColumnLineage, ColumnLineage]]:
    """Return the common columns of a USING or NATURAL join, from both sides."""
    names = [column.name.lower() for column in join.args.get("using") or ()]
    known = {column.name.lower(): column.lineage for column in left}
    if join.method == "NATURAL":
        names = [name for name in known if name in right.by_name]
    shared = {}
    for name in names:
        missing = ColumnLineage(unknown=f"no table is known to have '{name}'")
        pair = (known.get(name, missing), right.by_name.get(name, missing))
        shared[name] = pair
        for side in pair:
            scope.rows.add(side, Use.JOIN)
    return shared


def _joined(
    join: exp.Join,
    left: Sequence[NamedColumn],
    right: Relation,
    shared: dict[str, tuple[ColumnLineage, ColumnLineage]],
) -> list[NamedColumn]:
    """Return the columns of `*` after a join: common columns first, and only once."""
    keys = [NamedColumn(name, _key(join.side, *pair)) for name, pair in shared.items()]
    spelled = {column.name.lower(): column.name for column in left}
    for key in keys:
        key.name = spelled.get(key.name, key.name)
    rest = (*left, *right.columns)
    return [*keys, *(column for column in rest if column.name.lower() not in shared)]


def _key(side: str, left: ColumnLineage, right: ColumnLineage) -> ColumnLineage:
    """Return the lineage of a common column: from the side that always has a value."""
    if side == "RIGHT":
        return right
    if side != "FULL":
        return left
    collected = SourceCollector()
    collected.add(left, Use.TRANSFORMATION)
    collected.add(right, Use.TRANSFORMATION)
    return collected.lineage()


def apply_pivot(relation: Relation, pivot: exp.Pivot, environment: Environment) -> Relation:
    """Return the result of PIVOT or UNPIVOT."""
    if relation.unknown is not None:
        return relation
    scope = Scope.over(relation, environment)
    field = pivot.args["fields"][0] if len(pivot.args.get("fields") or ()) == 1 else None
    if not isinstance(field, exp.In) or not field.expressions:
        return _unknown(relation, "the columns of the pivot are not listed")
    if pivot.args.get("unpivot"):
        return _unpivot(relation, pivot, field, scope)
    return _pivot(relation, pivot, field, scope)


def _pivot(relation: Relation, pivot: exp.Pivot, field: exp.In, scope: Scope) -> Relation:
    names = [column.name for column in pivot.args.get("columns") or ()]
    if len(names) != len(field.expressions) * len(pivot.expressions):
        return _unknown(relation, "the columns of the pivot are not listed")
    kept = _unused_columns(relation, [*pivot.expressions, field.this])
    pivoted = [_pivoted(aggregate, field, scope) for aggregate in pivot.expressions]
    columns = [
        NamedColumn(name, pivoted[index % len(pivoted)], unnamed=not name)
        for index, name in enumerate(names)
    ]
    rows = SourceCollector()
    rows.sources.update(relation.rows)
    for column in kept:
        rows.add(column.lineage, Use.GROUP_BY)
    return Relation((*kept, *columns), frozenset(rows.sources), relation.gaps)


def _pivoted(aggregate: exp.Expr, field: exp.In, scope: Scope) -> ColumnLineage:
    collected = SourceCollector()
    collect(aggregate, scope, Use.IDENTITY, collected)
    collect(field.this, scope, Use.CONDITIONAL, collected)
    return collected.lineage()


def _unpivot(relation: Relation, pivot: exp.Pivot, field: exp.In, scope: Scope) -> Relation:
    sources = [
        _listed(column.this if isinstance(column, exp.PivotAlias) else column)
        for column in field.expressions
    ]
    values = _listed(pivot.expressions[0])
    kept = _unused_columns(relation, [column for group in sources for column in group])
    columns = [NamedColumn(field.this.name, ColumnLineage())]
    for index, value in enumerate(values):
        collected = SourceCollector()
        for group in sources:
            collect(group[index], scope, Use.TRANSFORMATION, collected)
        columns.append(NamedColumn(value.name, collected.lineage()))
    return replace(relation, columns=(*kept, *columns))


def _listed(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _unused_columns(relation: Relation, used: Sequence[exp.Expr]) -> list[NamedColumn]:
    """Return the columns that these expressions do not use."""
    names = set(_column_names_in(used))
    return [column for column in relation.columns if column.name.lower() not in names]


def _column_names_in(expressions: Sequence[exp.Expr]) -> Iterator[str]:
    for expression in expressions:
        for column in expression.find_all(exp.Column):
            yield column.name.lower()


def _unknown(relation: Relation, reason: str) -> Relation:
    return Relation(rows=relation.rows, gaps=relation.gaps, unknown=reason)
