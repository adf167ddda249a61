"""Read PIVOT and UNPIVOT."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from floe.execution.column_lineage.expressions import collect
from floe.execution.column_lineage.model import ColumnLineage, Use
from floe.execution.column_lineage.relations import Found, NamedColumn, Relation
from floe.execution.column_lineage.scopes import Environment, Scope


def apply_pivot(relation: Relation, pivot: exp.Pivot, environment: Environment) -> Relation:
    """Return what becomes of a table by PIVOT or UNPIVOT."""
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
    kept = _without(relation, [*pivot.expressions, field.this])
    made = [_pivoted(aggregate, field, scope) for aggregate in pivot.expressions]
    columns = [
        NamedColumn(name, made[number % len(made)], unnamed=not name)
        for number, name in enumerate(names)
    ]
    rows = Found()
    rows.sources.update(relation.rows)
    for column in kept:
        rows.add(column.lineage, Use.GROUP_BY)
    return Relation((*kept, *columns), frozenset(rows.sources), relation.gaps)


def _pivoted(aggregate: exp.Expr, field: exp.In, scope: Scope) -> ColumnLineage:
    found = Found()
    collect(aggregate, scope, Use.IDENTITY, found)
    collect(field.this, scope, Use.CONDITIONAL, found)
    return found.lineage()


def _unpivot(relation: Relation, pivot: exp.Pivot, field: exp.In, scope: Scope) -> Relation:
    sources = [
        _listed(one.this if isinstance(one, exp.PivotAlias) else one) for one in field.expressions
    ]
    values = _listed(pivot.expressions[0])
    kept = _without(relation, [column for group in sources for column in group])
    columns = [NamedColumn(field.this.name, ColumnLineage())]
    for number, value in enumerate(values):
        found = Found()
        for group in sources:
            collect(group[number], scope, Use.TRANSFORMATION, found)
        columns.append(NamedColumn(value.name, found.lineage()))
    return replace(relation, columns=(*kept, *columns))


def _listed(node: exp.Expr) -> Sequence[exp.Expr]:
    return node.expressions if isinstance(node, exp.Tuple) else [node]


def _without(relation: Relation, used: Sequence[exp.Expr]) -> list[NamedColumn]:
    """Return the columns that these expressions do not use."""
    names = set(_names(used))
    return [column for column in relation.columns if column.name.lower() not in names]


def _names(expressions: Sequence[exp.Expr]) -> Iterator[str]:
    for expression in expressions:
        for column in expression.find_all(exp.Column):
            yield column.name.lower()


def _unknown(relation: Relation, reason: str) -> Relation:
    return Relation(rows=relation.rows, gaps=relation.gaps, unknown=reason)
