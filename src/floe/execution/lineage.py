"""Column lineage of a run's outputs, on the schemas that its inputs really have.

Of SQL it is read from the SQL. Of functions it is read from Spark's plan of what they returned, in
which each input has an alias that it is known by.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floe.catalog.schemas import Column, list_columns_of
from floe.execution.column_lineage import (
    INPUT_PREFIX,
    OutputLineage,
    SqlStep,
    to_facet,
    trace,
    trace_plan,
    with_declared,
)
from floe.execution.planning import RunPlan
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def goes_by_plan(spec: ProcessSpec) -> bool:
    """Tell whether functions of frames do the work, so that only Spark's plan shows it."""
    if spec.runs_on == "pyspark" and spec.function is not None:
        return True
    return any(step.function is not None for step in spec.steps)


def mark_input(alias: str, frame: "DataFrame") -> "DataFrame":
    """Let an input be known in the plan of what a function makes of it."""
    return frame.alias(f"{INPUT_PREFIX}{alias}")


def trace_outputs(
    workspace: Workspace,
    plan: RunPlan,
    columns: Mapping[str, Sequence[Column]],
    explained: Mapping[str, str],
) -> dict[str, Mapping[str, Any]]:
    """Return the lineage of each output as a facet. What is not known is left out.

    `explained` is what Spark said of the outputs that functions have made.
    """
    steps = _steps(workspace, plan)
    wanted = workspace.site.spec.observability.column_lineage
    if not wanted or not (steps or explained or plan.spec.column_lineage):
        return {}
    inputs = _schemas(workspace, plan)
    traced = trace(steps, inputs, columns, plan.spec.column_lineage)
    for alias, text in explained.items():
        found = _trace_plan(text, inputs, columns[alias])
        traced[alias] = with_declared(found, plan.spec.column_lineage.get(alias, {}), inputs)
    datasets = {alias: (workspace.lake, one.dataset) for alias, one in plan.inputs.items()}
    facets = {alias: to_facet(lineage, datasets) for alias, lineage in traced.items()}
    return {alias: facet for alias, facet in facets.items() if facet is not None}


def _trace_plan(
    text: str, inputs: Mapping[str, Sequence[Any]], columns: Sequence[Column]
) -> OutputLineage:
    known = {alias: [one.name for one in schema] for alias, schema in inputs.items()}
    return trace_plan(text, known, [one.name for one in columns])


def _steps(workspace: Workspace, plan: RunPlan) -> list[SqlStep]:
    read = workspace.site.read_text
    if plan.spec.sql is not None:
        (alias,) = plan.spec.outputs
        return [SqlStep(alias, read(plan.spec.sql))]
    return [SqlStep(step.name, step.sql and read(step.sql)) for step in plan.spec.steps]


def _schemas(workspace: Workspace, plan: RunPlan) -> dict[str, Sequence[Any]]:
    """The columns of each input: as they were seen, else as they are declared."""
    hashes = {one.schema_hash for one in plan.inputs.values() if one.schema_hash}
    with workspace.catalog.reading() as session:
        seen = list_columns_of(session, hashes) if hashes else {}
    return {
        alias: seen.get(one.schema_hash or "") or workspace.dataset(one.dataset).columns
        for alias, one in plan.inputs.items()
    }
