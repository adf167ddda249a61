"""Column lineage of a run's outputs, from its SQL and the schemas that its inputs really have."""

from collections.abc import Mapping, Sequence
from typing import Any

from floe.catalog.schemas import Column, list_columns_of
from floe.execution.column_lineage import SqlStep, to_facet, trace
from floe.execution.planning import RunPlan
from floe.execution.workspace import Workspace


def trace_outputs(
    workspace: Workspace, plan: RunPlan, columns: Mapping[str, Sequence[Column]]
) -> dict[str, Mapping[str, Any]]:
    """Return the lineage of each output as a facet. What is not known is left out."""
    steps = _steps(workspace, plan)
    if not steps and not plan.spec.column_lineage:
        return {}
    inputs = _schemas(workspace, plan)
    traced = trace(steps, inputs, columns, plan.spec.column_lineage)
    datasets = {alias: (workspace.lake, one.dataset) for alias, one in plan.inputs.items()}
    facets = {alias: to_facet(lineage, datasets) for alias, lineage in traced.items()}
    return {alias: facet for alias, facet in facets.items() if facet is not None}


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
