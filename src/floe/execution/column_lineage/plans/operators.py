"""The operators of a plan: which columns each gives, and what decides on its rows.

An operator that is not known here makes all that stands on it unknown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from floe.execution.column_lineage.model import ColumnLineage, Source, Use, rows_of
from floe.execution.column_lineage.plans.expressions import (
    ENDS_WITH_NUMBER,
    Attribute,
    add_uses,
    define,
    lineage_of,
    split_columns,
    split_list,
)
from floe.execution.column_lineage.plans.tree import PlanNode
from floe.execution.column_lineage.relations import Found, UnknowableError

INPUT_PREFIX = "floe_input_"
"""The alias of an input in a plan begins with it."""
ELSEWHERE = "it comes from something that is no input"
BY_PYTHON = "a Python function makes its rows"


@dataclass(frozen=True)
class Table:
    """The result of an operator: its columns in their order, and what decides on its rows."""

    columns: tuple[Attribute, ...] = ()
    rows: frozenset[Source] = frozenset()
    gaps: tuple[str, ...] = ()

    @cached_property
    def scope(self) -> dict[str, Attribute]:
        return {column.number: column for column in self.columns}

    def influenced(self, found: Found) -> "Table":
        """The same columns, with more that decides on the rows."""
        gaps = tuple(dict.fromkeys((*self.gaps, *found.gaps)))
        return replace(self, rows=self.rows | found.sources, gaps=gaps)


@dataclass
class Reading:
    """What is known while a plan is read."""

    inputs: Mapping[str, Sequence[str]]
    """The columns of each input, by its alias."""
    shared: dict[str, Table] = field(default_factory=dict)
    """The named parts of a plan that several places refer to."""


Operator = Callable[[PlanNode, list[Table], Reading], Table]


def evaluate(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    """Return what an operator makes of the tables below it."""
    operator = _OPERATORS.get(node.name)
    if operator is None:
        raise UnknowableError(f"floe cannot follow Spark's {node.name or 'plan'}")
    return operator(node, tables, reading)


def _same(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return table


def _leaf(node: PlanNode, _tables: list[Table], _reading: Reading) -> Table:
    """Data that the plan reads; who it belongs to is said by the alias above it."""
    listed = _lists(node.body)[-1:] or [""]
    names = [part.strip() for part in listed[0].split(",") if part.strip()]
    return Table(tuple(_listed(names, ColumnLineage(unknown=ELSEWHERE))), gaps=(ELSEWHERE,))


def _nothing(_node: PlanNode, _tables: list[Table], _reading: Reading) -> Table:
    return Table()


def _by_python(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Whatever comes in may be in whatever comes out."""
    listed = _lists(node.body)[-1:]
    if not listed:
        raise UnknowableError(BY_PYTHON)
    columns = _listed(split_columns(listed[0]), ColumnLineage(unknown=BY_PYTHON))
    rows = frozenset[Source]().union(*(table.rows for table in tables))
    return Table(tuple(columns), rows, (BY_PYTHON,))


def _alias(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    (table,) = tables
    if not node.body.startswith(INPUT_PREFIX):
        return table
    alias = node.body.removeprefix(INPUT_PREFIX)
    names = [column.name for column in table.columns]
    known = reading.inputs.get(alias)
    if known is None or [name.lower() for name in known] != [name.lower() for name in names]:
        raise UnknowableError(f"the columns of '{alias}' are not those that are known of it")
    columns = (
        replace(one, lineage=ColumnLineage(frozenset({Source(alias, name, Use.IDENTITY)})))
        for one, name in zip(table.columns, known, strict=True)
    )
    return Table(tuple(columns), rows_of(alias))


def _project(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    (listed,) = _lists(node.body)
    return replace(table, columns=_defined(listed, table))


def _filter(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return _decided(table, node.body, Use.FILTER)


def _sort(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return _decided(table, node.body, Use.SORT)


def _deduplicate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Of rows with the same keys one stays: which one, the keys decide unless they are all."""
    (table,) = tables
    (keys,) = _lists(node.body)
    return table if len(split_columns(keys)) == len(table.columns) else _decided(
        table, keys, Use.GROUP_BY
    )  # fmt: skip


def _aggregate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    lists = _lists(node.body)
    keys = lists[0] if len(lists) == 2 else ""
    grouped = {number for number in re.findall(r"#(\d+)", keys) if number in table.scope}
    columns = tuple(define(one, table.scope, grouped) for one in split_columns(lists[-1]))
    return replace(_decided(table, keys, Use.GROUP_BY), columns=columns)


def _window(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return replace(table, columns=(*table.columns, *_defined(_lists(node.body)[0], table)))


def _generate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    lineage = lineage_of(split_list(node.body)[0], table.scope)
    made = _listed(split_columns(_lists(node.body)[-1]), lineage)
    return replace(table, columns=(*table.columns, *made))


def _expand(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Each row several times, as the sets of a GROUP BY want it."""
    (table,) = tables
    variants, made = _lists(node.body)
    rows = [split_list(one[1:-1]) for one in split_list(variants)]
    outputs = split_columns(made)
    if any(len(row) != len(outputs) for row in rows):
        raise UnknowableError("an expression holds a text with commas")
    columns = []
    for place, output in enumerate(outputs):
        found = Found()
        for row in rows:
            found.add(lineage_of(row[place], table.scope), Use.IDENTITY)
        (column,) = _listed([output], found.lineage())
        columns.append(column)
    return replace(table, columns=tuple(columns))


def _join(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    left, right = tables
    kind, _, condition = node.body.partition(", ")
    if "(" in kind:
        raise UnknowableError(f"floe cannot follow a {kind} join")
    both = _beside(left, right, (*left.columns, *right.columns))
    joined = _decided(both, condition, Use.JOIN)
    return replace(joined, columns=left.columns) if kind in ("LeftSemi", "LeftAnti") else joined


def _union(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    first = tables[0]
    for other in tables[1:]:
        if len(other.columns) != len(first.columns):
            raise UnknowableError("the parts of a union differ in their number of columns")
        columns = []
        for one, another in zip(first.columns, other.columns, strict=True):
            found = Found()
            found.add(one.lineage, Use.IDENTITY)
            found.add(another.lineage, Use.IDENTITY)
            columns.append(replace(one, lineage=found.lineage()))
        first = _beside(first, other, tuple(columns))
    return first


def _without(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """EXCEPT and INTERSECT: the second only filters the first."""
    left, right = tables
    found = Found()
    for column in right.columns:
        found.add(column.lineage, Use.FILTER)
    return _beside(left, right, left.columns).influenced(found)


def _view(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    listed = split_columns(_lists(node.body[1:-1])[-1])
    if [f"{one.name}#{one.number}" for one in table.columns] != [
        one.removesuffix("L") for one in listed
    ]:
        raise UnknowableError("a view has other columns than its query")
    return table


def _with_shared(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    return tables[-1]


def _shared(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    (table,) = tables
    reading.shared[node.body.partition(",")[0]] = table
    return table


def _refer(node: PlanNode, _tables: list[Table], reading: Reading) -> Table:
    table = reading.shared.get(node.body.partition(",")[0])
    listed = split_columns(_lists(node.body)[0])
    if table is None or len(listed) != len(table.columns):
        raise UnknowableError("its plan refers to a part that cannot be found")
    unnamed = _listed(listed, ColumnLineage())
    pairs = zip(table.columns, unnamed, strict=True)
    columns = (old.renumbered(new.number, new.name) for old, new in pairs)
    return replace(table, columns=tuple(columns))


def _beside(left: Table, right: Table, columns: tuple[Attribute, ...]) -> Table:
    gaps = tuple(dict.fromkeys((*left.gaps, *right.gaps)))
    return Table(columns, left.rows | right.rows, gaps)


def _decided(table: Table, expression: str, use: Use) -> Table:
    found = Found()
    add_uses(expression, table.scope, use, found)
    return table.influenced(found)


def _defined(listed: str, table: Table) -> tuple[Attribute, ...]:
    return tuple(define(one, table.scope) for one in split_columns(listed))


def _listed(texts: Sequence[str], lineage: ColumnLineage) -> list[Attribute]:
    """Columns as a list of outputs has them: a name and a number."""
    columns = []
    for text in texts:
        number = ENDS_WITH_NUMBER.search(text)
        if number is None:
            raise UnknowableError("its plan has a column without a number")
        columns.append(Attribute(number[1], text[: number.start()], lineage))
    return columns


def _lists(body: str) -> list[str]:
    """The lists in square brackets that an operator consists of."""
    found, depth, start = [], 0, 0
    for place, letter in enumerate(body):
        if letter in "([":
            if letter == "[" and depth == 0:
                start = place + 1
            depth += 1
        elif letter in ")]":
            depth -= 1
            if letter == "]" and depth == 0:
                found.append(body[start:place])
    if depth or (body.startswith("[") and not found):
        raise UnknowableError("an expression holds a text with brackets")
    return found


_OPERATORS: Mapping[str, Operator] = {
    **dict.fromkeys(
        ("GlobalLimit", "LocalLimit", "Offset", "Tail", "Distinct", "Sample", "Repartition",
         "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "CollectMetrics",
         "PipeOperator"),
        _same,
    ),
    **dict.fromkeys(("Relation", "RelationV2", "LocalRelation", "LogicalRDD"), _leaf),
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow",
         "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
        _by_python,
    ),
    "OneRowRelation": _nothing,
    "SubqueryAlias": _alias,
    "Project": _project,
    "Filter": _filter,
    "Sort": _sort,
    "Deduplicate": _deduplicate,
    "Aggregate": _aggregate,
    "Window": _window,
    "Generate": _generate,
    "Expand": _expand,
    "Join": _join,
    "Union": _union,
    "Except": _without,
    "Intersect": _without,
    "View": _view,
    "WithCTE": _with_shared,
    "CTERelationDef": _shared,
    "CTERelationRef": _refer,
}  # fmt: skip
