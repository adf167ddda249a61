"""Read an expression: which columns it uses, and how.

A CASE or IF uses the columns of its conditions as CONDITIONAL and those of its results directly.
A function of a window uses what it partitions and orders by as WINDOW. Whatever stands within
a filter, a join condition and the like is used as that, however deep.
"""

from collections.abc import Iterator

from sqlglot import exp

from floe.execution.column_lineage.model import ColumnLineage, Use
from floe.execution.column_lineage.relations import Found, Relation
from floe.execution.column_lineage.scopes import Scope

# Aggregates of Spark that the parser does not know as such.
AGGREGATES = frozenset(
    {
        *("every", "some", "mean", "std", "try_avg", "try_sum", "product", "histogram_numeric"),
        *("hll_sketch_agg", "hll_union_agg", "count_min_sketch", "theta_sketch_agg"),
        *("theta_union_agg", "theta_intersection_agg", "kll_sketch_agg_bigint"),
    }
)
# The parser calls these aggregates, but they take over the value of one row.
TAKEN_FROM_A_ROW = (exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)
# What leaves its content as it is.
_WRAPPERS = (exp.Alias, exp.Paren)
# The names of lambda variables and struct fields: no columns.
_LEAVES = (exp.Identifier, exp.Literal, exp.Placeholder, exp.DataType, exp.Var, exp.Star)

Part = tuple[exp.Expr, Use]


def lineage_of(expression: exp.Expr, scope: Scope) -> ColumnLineage:
    """Return what the value of an expression is made from."""
    found = Found()
    collect(expression, scope, Use.IDENTITY, found)
    return found.lineage()


def collect(expression: exp.Expr, scope: Scope, use: Use, found: Found) -> None:
    """Add the columns that an expression uses, itself being used in this way."""
    # A stack and no recursion: a condition may be a chain of thousands of ORs.
    stack: list[Part] = [(expression, use)]
    while stack:
        node, use = stack.pop()
        if isinstance(node, exp.Column):
            _collect_column(node, scope, use, found)
        elif isinstance(node, exp.Query):
            _collect_query(node, scope, use, found)
        elif isinstance(node, exp.Exists) and isinstance(node.this, exp.Query):
            # Only whether there are rows counts, not what is selected.
            _collect_rows(_evaluate(node.this, scope), use, found)
        elif isinstance(node, _LEAVES):
            pass
        else:
            stack.extend(_parts(node, scope, use, found))


def _collect_column(node: exp.Column, scope: Scope, use: Use, found: Found) -> None:
    if isinstance(node.this, exp.Star):  # count(t.*), struct(t.*)
        for column in scope.star(node.table):
            found.add(column.lineage, _deeper(use))
        return
    lineage, whole = scope.resolve(node)
    found.add(lineage, use if whole else _deeper(use))


def _collect_query(node: exp.Query, scope: Scope, use: Use, found: Found) -> None:
    relation = _evaluate(node, scope)
    for column in relation.columns:
        found.add(column.lineage, use)
    # What decides on the rows of the query decides on its value.
    _collect_rows(relation, use, found)


def _collect_rows(relation: Relation, use: Use, found: Found) -> None:
    found.add_sources(relation.rows, use)
    found.reasons += relation.gaps
    if relation.unknown is not None:
        found.reasons.append(relation.unknown)


def _evaluate(query: exp.Query, scope: Scope) -> Relation:
    return scope.environment.evaluate(query, scope.environment, scope)


def _parts(node: exp.Expr, scope: Scope, use: Use, found: Found) -> Iterator[Part]:
    """Return what an expression consists of, and how it uses each part."""
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
        inner = _aggregated(use) if _is_aggregate(node) else _deeper(use)
        for part in node.iter_expressions():
            if isinstance(part, exp.Star) and not isinstance(node, exp.Count):
                for column in scope.star():  # struct(*)
                    found.add(column.lineage, inner)
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
            yield branch.args["true"], _deeper(use)
    other = node.args.get("default") or node.args.get("false")
    if other is not None:
        yield other, _deeper(use)


def _window(node: exp.Window, scope: Scope, use: Use) -> Iterator[Part]:
    if not isinstance(node.this, exp.Identifier):  # that is the definition of a named window
        yield node.this, _deeper(use)
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
        node, TAKEN_FROM_A_ROW
    )


def has_aggregate(expression: exp.Expr) -> bool:
    """Tell whether an expression is an aggregate over a group, and not one over a window."""
    return any(
        _is_aggregate(node) and not isinstance(node.parent, exp.Window)
        for node in expression.walk(prune=lambda node: isinstance(node, exp.Query))
    )


def _deeper(use: Use) -> Use:
    return Use.TRANSFORMATION if use is Use.IDENTITY else use


def _aggregated(use: Use) -> Use:
    return Use.AGGREGATION if use.direct else use


def _indirect(use: Use, what: Use) -> Use:
    return what if use.direct else use
