"""Read a query: the lineage of its columns, and what determines its rows.

DISTINCT and UNION without ALL only drop duplicate rows, so they add no lineage. The second query of
EXCEPT and INTERSECT only filters the first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from floe.execution.column_lineage.model import (
    NamedColumn,
    Relation,
    SourceCollector,
    UnknowableError,
    Use,
)
from floe.execution.column_lineage.sql_expressions import (
    Environment,
    Scope,
    collect,
    has_aggregate,
    lineage_of,
)
from floe.execution.column_lineage.sql_from import read_tables

# A recursive query is read again until nothing changes; each reading adds at least one source.
MOST_READINGS = 50


def evaluate(node: exp.Expr, environment: Environment, outer: Scope | None = None) -> Relation:
    """Return the result of a query; what is uncertain is unknown, never guessed."""
    try:
        environment = _with_ctes(node, environment, outer)
        if isinstance(node, exp.Subquery):
            relation = evaluate(node.this, environment, outer)
            return _sorted(node, relation, environment)
        if isinstance(node, exp.SetOperation):
            return _sorted(node, _combined(node, environment, outer), environment)
        if isinstance(node, exp.Select):
            return _select(node, environment, outer)
    except UnknowableError as error:
        return Relation(unknown=str(error))
    return Relation(unknown="it is not a query")


def _with_ctes(node: exp.Expr, environment: Environment, outer: Scope | None) -> Environment:
    clause = node.args.get("with_")
    if clause is None:
        return environment
    for cte in clause.expressions:
        names = [column.name for column in cte.args["alias"].args.get("columns") or ()]
        if clause.args.get("recursive") and isinstance(cte.this, exp.SetOperation):
            relation = _recursive(cte, names, environment, outer)
        else:
            relation = evaluate(cte.this, environment, outer).renamed(names)
        environment = environment.with_table(cte.alias, relation)
    return environment


def _recursive(
    cte: exp.CTE, names: Sequence[str], environment: Environment, outer: Scope | None
) -> Relation:
    """Read the non-recursive part first, then repeat until nothing changes."""
    relation = evaluate(cte.this.this, environment, outer).renamed(names)
    for _ in range(MOST_READINGS):
        inner = environment.with_table(cte.alias, relation)
        again = evaluate(cte.this, inner, outer).renamed(names)
        if _same(again, relation):
            break
        relation = again
    return relation


def _same(relation: Relation, other: Relation) -> bool:
    lineages = [column.lineage for column in relation.columns]
    return relation.rows == other.rows and lineages == [column.lineage for column in other.columns]


def _combined(node: exp.SetOperation, environment: Environment, outer: Scope | None) -> Relation:
    # A loop instead of recursion: a union may have thousands of parts.
    operations: list[exp.SetOperation] = []
    first: exp.Expr = node
    while isinstance(first, exp.SetOperation) and (first is node or not first.args.get("with_")):
        operations.append(first)
        first = first.this
    relation = evaluate(first, environment, outer)
    for operation in reversed(operations):
        relation = _combine(operation, relation, evaluate(operation.expression, environment, outer))
    return relation


def _combine(operation: exp.SetOperation, left: Relation, right: Relation) -> Relation:
    unknown = left.unknown or right.unknown
    if operation.args.get("by_name"):
        unknown = unknown or "a union matches columns by name"
    elif not unknown and len(left.columns) != len(right.columns):
        unknown = "the parts of a union differ in their number of columns"
    rows = left.rows | right.rows
    gaps = tuple(dict.fromkeys((*left.gaps, *right.gaps)))
    if unknown:
        return Relation((), rows, gaps, unknown)
    if isinstance(operation, exp.Union):
        return Relation(tuple(_both(left.columns, right.columns)), rows, gaps)
    collected = SourceCollector()
    for column in right.columns:
        collected.add(column.lineage, Use.FILTER)
    return Relation(left.columns, rows | collected.sources, (*gaps, *collected.gaps))


def _both(left: Sequence[NamedColumn], right: Sequence[NamedColumn]) -> Iterator[NamedColumn]:
    for column, other in zip(left, right, strict=True):
        collected = SourceCollector()
        collected.add(column.lineage, Use.IDENTITY)
        collected.add(other.lineage, Use.IDENTITY)
        yield NamedColumn(column.name, collected.lineage(), unnamed=column.unnamed)


def _select(node: exp.Select, environment: Environment, outer: Scope | None) -> Relation:
    scope = read_tables(node, environment, outer)
    scope.windows = {window.name.lower(): window for window in node.args.get("windows") or ()}
    _filter(node, ("where",), scope)
    columns = list(_project(node, scope))
    _group(node, columns, scope)
    _filter(node, ("having", "qualify"), scope)
    _sort(node, columns, scope)
    return Relation(tuple(columns), frozenset(scope.rows.sources), scope.rows.gaps)


def _filter(node: exp.Select, clauses: Sequence[str], scope: Scope) -> None:
    for clause in clauses:
        if node.args.get(clause) is not None:
            collect(node.args[clause].this, scope, Use.FILTER, scope.rows)


def _project(node: exp.Select, scope: Scope) -> Iterator[NamedColumn]:
    for expression in node.expressions:
        for column in _columns_of(expression, scope):
            scope.aliases.setdefault(column.name.lower(), column.lineage)
            yield column


def _columns_of(expression: exp.Expr, scope: Scope) -> Iterator[NamedColumn]:
    """Yield the columns of one select expression; a star yields several."""
    if expression.is_star and isinstance(expression, exp.Star | exp.Column):
        yield from _starred(expression, scope)
    elif isinstance(expression, exp.Aliases):
        lineage = lineage_of(expression.this, scope)
        for alias in expression.expressions:
            yield NamedColumn(alias.name, lineage)
    elif isinstance(expression, exp.Alias | exp.Column):
        yield NamedColumn(expression.output_name, lineage_of(expression, scope))
    elif isinstance(expression, exp.UDTF | exp.Explode | exp.Posexplode | exp.Inline | exp.Stack):
        raise UnknowableError(f"the columns of {expression.key} have no names. Name them with AS")
    else:
        name = expression.output_name
        shown = name or expression.sql(dialect="spark")
        yield NamedColumn(shown, lineage_of(expression, scope), unnamed=not name)


def _starred(expression: exp.Expr, scope: Scope) -> Iterator[NamedColumn]:
    star = expression.this if isinstance(expression, exp.Column) else expression
    if any(value for key, value in star.args.items() if key != "except_"):
        raise UnknowableError("a star has a modifier that Spark does not support")
    qualifier = ""
    if isinstance(expression, exp.Column):
        qualifier = ".".join(part.name for part in expression.parts[:-1])
    dropped = {column.name.lower() for column in star.args.get("except_") or ()}
    for column in scope.star(qualifier):
        if column.name.lower() not in dropped:
            yield column


def _group(node: exp.Select, columns: Sequence[NamedColumn], scope: Scope) -> None:
    group = node.args.get("group")
    if group is None:
        return
    if group.args.get("all"):
        plain = [expression for expression in node.expressions if not has_aggregate(expression)]
        for expression in plain:
            for column in _columns_of(expression, scope):
                scope.rows.add(column.lineage, Use.GROUP_BY)
    for part in group.iter_expressions():
        _collect_key(part, columns, scope, Use.GROUP_BY)


def _sort(node: exp.Expr, columns: Sequence[NamedColumn], scope: Scope) -> None:
    scope.results = {column.name.lower(): column.lineage for column in columns}
    for clause in ("order", "sort", "cluster"):
        keys = node.args[clause].expressions if node.args.get(clause) is not None else ()
        for key in keys:
            inner = key.this if isinstance(key, exp.Ordered) else key
            if isinstance(inner, exp.Var) and inner.name.upper() == "ALL":
                for column in columns:
                    scope.rows.add(column.lineage, Use.SORT)
            else:
                _collect_key(inner, columns, scope, Use.SORT)


def _collect_key(key: exp.Expr, columns: Sequence[NamedColumn], scope: Scope, use: Use) -> None:
    """Read a grouping or sorting key: an expression, or the position of a column."""
    if isinstance(key, exp.Literal) and key.is_int:
        index = int(key.name) - 1
        if 0 <= index < len(columns):
            scope.rows.add(columns[index].lineage, use)
        return
    collect(key, scope, use, scope.rows)


def _sorted(node: exp.Expr, relation: Relation, environment: Environment) -> Relation:
    """Read the ORDER BY of a union or subquery, which sees only its result."""
    if relation.unknown is not None or not (node.args.get("order") or node.args.get("sort")):
        return relation
    scope = Scope.over(relation, environment)
    _sort(node, relation.columns, scope)
    return replace(relation, rows=frozenset(scope.rows.sources), gaps=scope.rows.gaps)
