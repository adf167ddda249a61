"""Follow the columns of a plan from its inputs to its result."""

import re
from collections.abc import Iterator, Mapping, Sequence

from floe.execution.column_lineage.model import ColumnLineage, OutputLineage, drop_known_rows
from floe.execution.column_lineage.plans.operators import Reading, Table, evaluate
from floe.execution.column_lineage.plans.tree import PlanNode, read_plan
from floe.execution.column_lineage.relations import NamedColumn, UnknowableError, index_columns

SHARED = "CTERelationDef"
TYPE = "(?:[^,]|,(?! ))+"


def trace_plan(
    explained: str, inputs: Mapping[str, Sequence[str]], written: Sequence[str]
) -> OutputLineage:
    """Return the lineage of a frame, by what EXPLAIN EXTENDED says of it.

    `inputs` are the columns of each input by its alias, `written` those of the output, which may
    stand in another order and be more. A plan whose result is not what Spark says of it was not
    understood.
    """
    try:
        listed, root = read_plan(explained)
        table = _follow(root, Reading(inputs))
        _compare(listed, table)
    except UnknowableError as error:
        unknown = ColumnLineage(unknown=str(error))
        return OutputLineage(dict.fromkeys(written, unknown), unknown=str(error))
    found = index_columns([NamedColumn(one.name, one.lineage) for one in table.columns])
    columns = {
        name: found.get(name.lower()) or ColumnLineage(unknown=f"its plan has no column '{name}'")
        for name in written
    }
    return drop_known_rows(OutputLineage(columns, table.rows, None, table.gaps))


def _compare(listed: str, table: Table) -> None:
    """Hold the columns that were followed to those that Spark lists: `id: bigint, ccy: string`."""
    wanted = ", ".join(rf"{re.escape(one.name)}: {TYPE}" for one in table.columns)
    if re.fullmatch(wanted, listed) is None:
        raise UnknowableError("its plan does not end in the columns that Spark says")


def _follow(root: PlanNode, reading: Reading) -> Table:
    """From the leaves up, in a loop: a plan may be thousands of operators deep."""
    tables: dict[int, Table] = {}
    for node in _in_order(root):
        if id(node) not in tables:
            below = [tables[id(child)] for child in node.children]
            tables[id(node)] = evaluate(node, below, reading)
    return tables[id(root)]


def _in_order(root: PlanNode) -> Iterator[PlanNode]:
    """Each operator after those below it, and what is referred to before who refers to it."""
    for node in root.walk():
        if node.name == SHARED:
            yield from reversed(list(node.walk()))
    yield from reversed(list(root.walk()))
