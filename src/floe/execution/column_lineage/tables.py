"""Read what stands behind FROM: tables, queries, joins, generators."""

from collections.abc import Iterable, Sequence

from sqlglot import exp

from floe.execution.column_lineage.expressions import collect
from floe.execution.column_lineage.model import ColumnLineage, Use
from floe.execution.column_lineage.pivots import apply_pivot
from floe.execution.column_lineage.relations import Found, NamedColumn, Relation, UnknowableError
from floe.execution.column_lineage.scopes import Environment, Scope

NOTHING = ColumnLineage()


def read_tables(node: exp.Expr, environment: Environment, outer: Scope | None) -> Scope:
    """Return the scope of a SELECT: what its FROM, its joins and lateral views offer."""
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
    scope.know(tables, relation)
    scope.set_columns([*scope.columns, *relation.columns])


def _side(scope: Scope, node: exp.Expr) -> tuple[dict[str, Relation], Relation]:
    """Return what stands on one side of a join: the tables by their names, and all of it."""
    if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
        inner = Scope(scope.environment, scope.outer)
        _add(inner, node.this)
        for join in node.this.args.get("joins") or ():
            _join(inner, join)
        # Of (a join b) the tables keep their names, unless it gets one as a whole.
        return ({node.alias: _whole(inner)} if node.alias else inner.tables), _whole(inner)
    names, relation = _read(scope, node)
    return dict.fromkeys(names, relation), relation


def _read(scope: Scope, node: exp.Expr) -> tuple[Sequence[str], Relation]:
    """Return the names by which a table is known here, and what it is."""
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
    return Relation(unknown=f"it is not known what columns {node.key} gives")


def _whole(scope: Scope) -> Relation:
    unknown = scope.unknown[0] if scope.unknown else None
    columns = () if unknown else tuple(scope.columns)
    return Relation(columns, frozenset(scope.rows.sources), scope.rows.gaps, unknown)


def _column_names(node: exp.Expr) -> list[str]:
    alias = node.args.get("alias")
    return [column.name for column in alias.args.get("columns") or ()] if alias else []


def _values(node: exp.Values, scope: Scope) -> Relation:
    """Literals, as a rule; VALUES of a lateral query may hold columns."""
    first = node.expressions[0]
    width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
    columns = []
    for number in range(width):
        found = Found()
        for row in node.expressions:
            value = row.expressions[number] if isinstance(row, exp.Tuple) else row
            collect(value, scope, Use.IDENTITY, found)
        columns.append(NamedColumn(f"col{number + 1}", found.lineage()))
    return Relation(tuple(columns))


def _generated(function: exp.Expr, names: Sequence[str], scope: Scope) -> Relation:
    """Return what explode and its like make: every column from all that they are given."""
    called = function.name if isinstance(function, exp.Anonymous) else function.key
    if called.lower() == "range":
        return Relation((NamedColumn("id", NOTHING),))
    if not names:
        return Relation(unknown=f"the columns of {called} are not named. Name them: as t(a, b)")
    found = Found()
    collect(function, scope, Use.IDENTITY, found)
    return Relation(tuple(NamedColumn(name, found.lineage()) for name in names))


def _join(scope: Scope, join: exp.Join) -> None:
    if join.args.get("pivots") or join.this.args.get("pivots"):
        # Of the join as a whole or of its right side: the parser does not tell.
        raise UnknowableError("a pivot stands behind a join. Put what it is for in brackets")
    tables, right = _side(scope, join.this)
    left, unknown = list(scope.columns), list(scope.unknown)
    scope.know(tables, right)
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
    """Behind a semi or anti join, only the left side is seen."""
    for name in names:
        scope.tables.pop(name.lower(), None)


def _shared(
    scope: Scope, join: exp.Join, left: Sequence[NamedColumn], right: Relation
) -> dict[str, tuple[ColumnLineage, ColumnLineage]]:
    """Return the columns that a join has in common by USING or NATURAL, of either side."""
    names = [one.name.lower() for one in join.args.get("using") or ()]
    known = {column.name.lower(): column.lineage for column in left}
    if join.method == "NATURAL":
        names = [name for name in known if name in right.by_name]
    shared = {}
    for name in names:
        missing = ColumnLineage(unknown=f"it is not known which table has '{name}'")
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
    """Return what a star stands for behind a join: columns in common once, and first."""
    keys = [NamedColumn(name, _key(join.side, *pair)) for name, pair in shared.items()]
    spelled = {column.name.lower(): column.name for column in left}
    for key in keys:
        key.name = spelled.get(key.name, key.name)
    rest = (*left, *right.columns)
    return [*keys, *(column for column in rest if column.name.lower() not in shared)]


def _key(side: str, left: ColumnLineage, right: ColumnLineage) -> ColumnLineage:
    """A common column has the value of the side that is always there."""
    if side == "RIGHT":
        return right
    if side != "FULL":
        return left
    found = Found()
    found.add(left, Use.TRANSFORMATION)
    found.add(right, Use.TRANSFORMATION)
    return found.lineage()
