"""Column lineage of a data frame, from the text of its analysed Spark plan. Pure.

A plan gives each column a unique id (`amount#12`), so values can be followed from the inputs to the
output, whatever code built the frame. Literals have no quotes in the text; where that is ambiguous,
and above unsupported operators, the lineage is unknown.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from floe.execution.column_lineage.model import (
    ColumnLineage,
    NamedColumn,
    OutputLineage,
    Source,
    SourceCollector,
    UnknowableError,
    Use,
    drop_known_rows,
    index_columns,
    rows_of,
)
from floe.execution.column_lineage.plan_expressions import (
    ENDS_WITH_NUMBER,
    Attribute,
    PlanNode,
    add_uses,
    define,
    lineage_of,
    read_plan,
    split_columns,
    split_list,
)

INPUT_PREFIX = "floe_input_"
"""Prefix of the aliases of inputs in a plan."""
NOT_AN_INPUT = "it comes from a source that is not an input"
PYTHON_ROWS = "a Python function produces its rows"


@dataclass(frozen=True)
class Table:
    """The result of an operator: its columns in order, and what determines its rows."""

    columns: tuple[Attribute, ...] = ()
    rows: frozenset[Source] = frozenset()
    gaps: tuple[str, ...] = ()

    @cached_property
    def scope(self) -> dict[str, Attribute]:
        return {column.attribute_id: column for column in self.columns}

    def with_row_sources(self, collected: SourceCollector) -> "Table":
        """Return the same columns with further row sources."""
        gaps = tuple(dict.fromkeys((*self.gaps, *collected.gaps)))
        return replace(self, rows=self.rows | collected.sources, gaps=gaps)


@dataclass
class Reading:
    """The state while a plan is read."""

    inputs: Mapping[str, Sequence[str]]
    """The columns of each input, by alias."""
    shared: dict[str, Table] = field(default_factory=dict)
    """Parts of a plan that are defined once and referenced, by id."""


Operator = Callable[[PlanNode, list[Table], Reading], Table]


def evaluate(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    """Return the result of an operator on its input tables."""
    operator = _OPERATORS.get(node.name)
    if operator is None:
        raise UnknowableError(f"floe does not support Spark's {node.name or 'plan'}")
    return operator(node, tables, reading)


def _unchanged(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return table


def _leaf(node: PlanNode, _tables: list[Table], _reading: Reading) -> Table:
    """Data that the plan reads; the alias above it tells which input it is."""
    listed = _lists(node.body)[-1:] or [""]
    names = [part.strip() for part in listed[0].split(",") if part.strip()]
    return Table(tuple(_listed(names, ColumnLineage(unknown=NOT_AN_INPUT))), gaps=(NOT_AN_INPUT,))


def _one_row(_node: PlanNode, _tables: list[Table], _reading: Reading) -> Table:
    return Table()


def _by_python(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Return columns of a Python function: any input column may affect any output."""
    listed = _lists(node.body)[-1:]
    if not listed:
        raise UnknowableError(PYTHON_ROWS)
    columns = _listed(split_columns(listed[0]), ColumnLineage(unknown=PYTHON_ROWS))
    rows = frozenset[Source]().union(*(table.rows for table in tables))
    return Table(tuple(columns), rows, (PYTHON_ROWS,))


def _alias(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    (table,) = tables
    if not node.body.startswith(INPUT_PREFIX):
        return table
    alias = node.body.removeprefix(INPUT_PREFIX)
    names = [column.name for column in table.columns]
    known = reading.inputs.get(alias)
    if known is None or [name.lower() for name in known] != [name.lower() for name in names]:
        raise UnknowableError(f"the columns of '{alias}' differ from its known columns")
    columns = (
        replace(column, lineage=ColumnLineage(frozenset({Source(alias, name, Use.IDENTITY)})))
        for column, name in zip(table.columns, known, strict=True)
    )
    return Table(tuple(columns), rows_of(alias))


def _project(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    (listed,) = _lists(node.body)
    return replace(table, columns=_defined(listed, table))


def _filter(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return _with_row_uses(table, node.body, Use.FILTER)


def _sort(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return _with_row_uses(table, node.body, Use.SORT)


def _deduplicate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Keep one row per key. If the keys are all columns, this changes no value."""
    (table,) = tables
    (keys,) = _lists(node.body)
    return table if len(split_columns(keys)) == len(table.columns) else _with_row_uses(
        table, keys, Use.GROUP_BY
    )  # fmt: skip


def _aggregate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    lists = _lists(node.body)
    keys = lists[0] if len(lists) == 2 else ""
    grouped = {column_id for column_id in re.findall(r"#(\d+)", keys) if column_id in table.scope}
    columns = tuple(define(text, table.scope, grouped) for text in split_columns(lists[-1]))
    return replace(_with_row_uses(table, keys, Use.GROUP_BY), columns=columns)


def _window(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    return replace(table, columns=(*table.columns, *_defined(_lists(node.body)[0], table)))


def _generate(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    lineage = lineage_of(split_list(node.body)[0], table.scope)
    generated = _listed(split_columns(_lists(node.body)[-1]), lineage)
    return replace(table, columns=(*table.columns, *generated))


def _expand(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """Repeat each row for every grouping set of a GROUP BY."""
    (table,) = tables
    variants, listed = _lists(node.body)
    rows = [split_list(variant[1:-1]) for variant in split_list(variants)]
    outputs = split_columns(listed)
    if any(len(row) != len(outputs) for row in rows):
        raise UnknowableError("an expression contains a text with commas")
    columns = []
    for index, output in enumerate(outputs):
        collected = SourceCollector()
        for row in rows:
            collected.add(lineage_of(row[index], table.scope), Use.IDENTITY)
        (column,) = _listed([output], collected.lineage())
        columns.append(column)
    return replace(table, columns=tuple(columns))


def _join(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    left, right = tables
    kind, _, condition = node.body.partition(", ")
    if "(" in kind:
        raise UnknowableError(f"floe does not support a {kind} join")
    both = _merged(left, right, (*left.columns, *right.columns))
    joined = _with_row_uses(both, condition, Use.JOIN)
    return replace(joined, columns=left.columns) if kind in ("LeftSemi", "LeftAnti") else joined


def _union(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    first = tables[0]
    for other in tables[1:]:
        if len(other.columns) != len(first.columns):
            raise UnknowableError("the parts of a union differ in their number of columns")
        columns = []
        for column, another in zip(first.columns, other.columns, strict=True):
            collected = SourceCollector()
            collected.add(column.lineage, Use.IDENTITY)
            collected.add(another.lineage, Use.IDENTITY)
            columns.append(replace(column, lineage=collected.lineage()))
        first = _merged(first, other, tuple(columns))
    return first


def _except(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    """EXCEPT and INTERSECT: the second table only filters the first."""
    left, right = tables
    collected = SourceCollector()
    for column in right.columns:
        collected.add(column.lineage, Use.FILTER)
    return _merged(left, right, left.columns).with_row_sources(collected)


def _view(node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    (table,) = tables
    listed = split_columns(_lists(node.body[1:-1])[-1])
    if [f"{column.name}#{column.attribute_id}" for column in table.columns] != [
        text.removesuffix("L") for text in listed
    ]:
        raise UnknowableError("the columns of a view differ from those of its query")
    return table


def _with_shared(_node: PlanNode, tables: list[Table], _reading: Reading) -> Table:
    return tables[-1]


def _shared_definition(node: PlanNode, tables: list[Table], reading: Reading) -> Table:
    (table,) = tables
    reading.shared[node.body.partition(",")[0]] = table
    return table


def _shared_reference(node: PlanNode, _tables: list[Table], reading: Reading) -> Table:
    table = reading.shared.get(node.body.partition(",")[0])
    listed = split_columns(_lists(node.body)[0])
    if table is None or len(listed) != len(table.columns):
        raise UnknowableError("its plan refers to an unknown part")
    unnamed = _listed(listed, ColumnLineage())
    pairs = zip(table.columns, unnamed, strict=True)
    columns = (old.renumbered(new.attribute_id, new.name) for old, new in pairs)
    return replace(table, columns=tuple(columns))


def _merged(left: Table, right: Table, columns: tuple[Attribute, ...]) -> Table:
    gaps = tuple(dict.fromkeys((*left.gaps, *right.gaps)))
    return Table(columns, left.rows | right.rows, gaps)


def _with_row_uses(table: Table, expression: str, use: Use) -> Table:
    collected = SourceCollector()
    add_uses(expression, table.scope, use, collected)
    return table.with_row_sources(collected)


def _defined(listed: str, table: Table) -> tuple[Attribute, ...]:
    return tuple(define(text, table.scope) for text in split_columns(listed))


def _listed(texts: Sequence[str], lineage: ColumnLineage) -> list[Attribute]:
    """Parse output columns: a name and an id each."""
    columns = []
    for text in texts:
        ending = ENDS_WITH_NUMBER.search(text)
        if ending is None:
            raise UnknowableError("its plan has a column without an id")
        columns.append(Attribute(ending[1], text[: ending.start()], lineage))
    return columns


def _lists(body: str) -> list[str]:
    """Return the lists in square brackets of an operator's text."""
    lists, depth, start = [], 0, 0
    for position, letter in enumerate(body):
        if letter in "([":
            if letter == "[" and depth == 0:
                start = position + 1
            depth += 1
        elif letter in ")]":
            depth -= 1
            if letter == "]" and depth == 0:
                lists.append(body[start:position])
    if depth or (body.startswith("[") and not lists):
        raise UnknowableError("an expression contains a text with brackets")
    return lists


_OPERATORS: Mapping[str, Operator] = {
    **dict.fromkeys(
        ("GlobalLimit", "LocalLimit", "Offset", "Tail", "Distinct", "Sample", "Repartition",
         "RepartitionByExpression", "RebalancePartitions", "ResolvedHint", "CollectMetrics",
         "PipeOperator"),
        _unchanged,
    ),
    **dict.fromkeys(("Relation", "RelationV2", "LocalRelation", "LogicalRDD"), _leaf),
    **dict.fromkeys(
        ("MapInPandas", "MapInArrow", "FlatMapGroupsInPandas", "FlatMapGroupsInArrow",
         "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow"),
        _by_python,
    ),
    "OneRowRelation": _one_row,
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
    "Except": _except,
    "Intersect": _except,
    "View": _view,
    "WithCTE": _with_shared,
    "CTERelationDef": _shared_definition,
    "CTERelationRef": _shared_reference,
}  # fmt: skip


SHARED = "CTERelationDef"
TYPE = "(?:[^,]|,(?! ))+"


def trace_plan(
    explained: str, inputs: Mapping[str, Sequence[str]], written: Sequence[str]
) -> OutputLineage:
    """Return the lineage of a frame from its EXPLAIN EXTENDED text.

    `inputs` holds the columns of each input by alias, `written` those of the output, which may have
    another order and further columns. The lineage is unknown if the result of following the plan
    differs from the columns that Spark lists.
    """
    try:
        listed, root = read_plan(explained)
        table = _follow(root, Reading(inputs))
        _compare(listed, table)
    except UnknowableError as error:
        unknown = ColumnLineage(unknown=str(error))
        return OutputLineage(dict.fromkeys(written, unknown), unknown=str(error))
    by_name = index_columns([NamedColumn(column.name, column.lineage) for column in table.columns])
    columns = {
        name: by_name.get(name.lower()) or ColumnLineage(unknown=f"its plan has no column '{name}'")
        for name in written
    }
    return drop_known_rows(OutputLineage(columns, table.rows, None, table.gaps))


def _compare(listed: str, table: Table) -> None:
    """Raise if the columns differ from Spark's list: `id: bigint, ccy: string`."""
    wanted = ", ".join(rf"{re.escape(column.name)}: {TYPE}" for column in table.columns)
    if re.fullmatch(wanted, listed) is None:
        raise UnknowableError("the result of its plan differs from the columns that Spark lists")


def _follow(root: PlanNode, reading: Reading) -> Table:
    """Evaluate a plan bottom-up, in a loop: it may be thousands of operators deep."""
    tables: dict[int, Table] = {}
    for node in _in_order(root):
        if id(node) not in tables:
            below = [tables[id(child)] for child in node.children]
            tables[id(node)] = evaluate(node, below, reading)
    return tables[id(root)]


def _in_order(root: PlanNode) -> Iterator[PlanNode]:
    """Yield each operator after its inputs, and shared parts before references."""
    for node in root.walk():
        if node.name == SHARED:
            yield from reversed(list(node.walk()))
    yield from reversed(list(root.walk()))
