"""The outputs of a run: the published versions, their shape and column lineage.

The shape is a hash of everything that determines the columns of an output. Asking Spark for the
columns of a query costs as much as planning it; an output with an unchanged shape has unchanged
columns, so Spark is not asked.

Column lineage is read from the SQL of a process. For functions it is read from Spark's plan of the
returned frames, in which every input has an alias.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from floe.catalog.schemas import Column, list_columns, list_columns_of
from floe.catalog.stable_names import details_of
from floe.catalog.version_queries import list_run_versions
from floe.catalog.versions import READY, SUPERSEDED
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
from floe.execution.reporting import ReportedOutput
from floe.execution.workspace import Workspace
from floe.spec import ProcessSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from floe.catalog.tables import DatasetVersion


@dataclass(frozen=True)
class PublishedOutput:
    """A version that an attempt published."""

    dataset: str
    tag: str
    rows: int | None
    size: int | None
    columns: Sequence[Column]
    measures: Mapping[str, Any] = field(default_factory=dict)

    def unknown(self) -> "PublishedOutput":
        """Return a copy without columns, because they are unknown."""
        return replace(self, columns=())


def find_published(
    workspace: Workspace, plan: RunPlan, versions: "Iterable[DatasetVersion]"
) -> dict[str, PublishedOutput]:
    """Return existing versions as outputs of a plan, by alias."""
    by_dataset_id = {version.dataset_id: version for version in versions}
    outputs = {}
    with workspace.catalog.reading() as session:
        for alias, output in plan.outputs.items():
            version = by_dataset_id.get(workspace.dataset_id(output.dataset, session))
            if version is not None:
                outputs[alias] = PublishedOutput(
                    output.dataset,
                    version.version_tag,
                    version.row_count,
                    version.size_bytes,
                    list_columns(session, version.schema_hash),
                )
    return outputs


def find_published_by(
    workspace: Workspace, plan: RunPlan, run_id: str
) -> dict[str, PublishedOutput]:
    """Return what another run of the process published, by alias.

    Columns are left out if that run's SQL may have differed from this plan's.
    """
    with workspace.catalog.reading() as session:
        versions = [
            version
            for version in list_run_versions(session, run_id)
            if version.state in (READY, SUPERSEDED)
        ]
    shapes = {version.version_tag: details_of(version).get("shape") for version in versions}
    return {
        alias: output
        if _same_work(workspace, plan, alias, shapes[output.tag])
        else output.unknown()
        for alias, output in find_published(workspace, plan, versions).items()
    }


def _same_work(workspace: Workspace, plan: RunPlan, alias: str, shape: object) -> bool:
    return shape is not None and shape == shape_of(workspace, plan, alias)


def report_outputs(
    workspace: Workspace,
    plan: RunPlan,
    outputs: Mapping[str, PublishedOutput],
    explained: Mapping[str, str],
) -> list[ReportedOutput]:
    """Return the outputs as they are reported, with their column lineage.

    `explained` holds Spark's plans of the outputs that functions returned.
    """
    columns = {alias: output.columns for alias, output in outputs.items()}
    plans = {alias: explained[alias] for alias in outputs if alias in explained}
    lineage = trace_outputs(workspace, plan, columns, plans)
    return [
        ReportedOutput(
            output.dataset, output.tag, output.rows, output.size, output.columns, lineage.get(alias)
        )
        for alias, output in outputs.items()
    ]


def shape_of(workspace: Workspace, plan: RunPlan, alias: str) -> str | None:
    """Return an output's shape; None unless only SQL and known inputs determine it."""
    spec = plan.spec
    sqls = [spec.sql, *(step.sql for step in spec.steps)]
    if spec.runs_on != "spark_sql" or any(step.sql is None for step in spec.steps):
        return None
    schemas = {alias: planned.schema_hash for alias, planned in plan.inputs.items()}
    if None in schemas.values():
        return None
    dataset = workspace.dataset(spec.outputs[alias].dataset)
    parts: list[Any] = [
        [workspace.site.read_text(sql) for sql in sqls if sql is not None],
        [step.name for step in spec.steps],
        sorted((name, type(value).__name__) for name, value in plan.params.items()),
        schemas,
        spec.spark_conf,
        dataset.model_dump(mode="json", by_alias=True, include={"columns", "format", "options"}),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def needs_spark_plan(spec: ProcessSpec) -> bool:
    """Tell whether functions of Spark frames do the work: only the plan shows lineage."""
    if spec.runs_on == "pyspark" and spec.function is not None:
        return True
    return any(step.function is not None for step in spec.steps)


def mark_input(alias: str, frame: "DataFrame") -> "DataFrame":
    """Alias an input, so that Spark's plan of a function's result shows it."""
    return frame.alias(f"{INPUT_PREFIX}{alias}")


def trace_outputs(
    workspace: Workspace,
    plan: RunPlan,
    columns: Mapping[str, Sequence[Column]],
    explained: Mapping[str, str],
) -> dict[str, Mapping[str, Any]]:
    """Return the lineage of each output as a facet. Unknown lineage is left out.

    `explained` holds Spark's plans of the outputs that functions returned.
    """
    steps = _steps(workspace, plan)
    wanted = workspace.site.spec.observability.column_lineage
    if not wanted or not (steps or explained or plan.spec.column_lineage):
        return {}
    inputs = _schemas(workspace, plan)
    traced = trace(steps, inputs, columns, plan.spec.column_lineage)
    for alias, text in explained.items():
        lineage = _trace_plan(text, inputs, columns[alias])
        traced[alias] = with_declared(lineage, plan.spec.column_lineage.get(alias, {}), inputs)
    datasets = {alias: (workspace.lake, planned.dataset) for alias, planned in plan.inputs.items()}
    facets = {alias: to_facet(lineage, datasets) for alias, lineage in traced.items()}
    return {alias: facet for alias, facet in facets.items() if facet is not None}


def _trace_plan(
    text: str, inputs: Mapping[str, Sequence[Any]], columns: Sequence[Column]
) -> OutputLineage:
    known = {alias: [column.name for column in schema] for alias, schema in inputs.items()}
    return trace_plan(text, known, [column.name for column in columns])


def _steps(workspace: Workspace, plan: RunPlan) -> list[SqlStep]:
    read = workspace.site.read_text
    if plan.spec.sql is not None:
        (alias,) = plan.spec.outputs
        return [SqlStep(alias, read(plan.spec.sql))]
    return [SqlStep(step.name, step.sql and read(step.sql)) for step in plan.spec.steps]


def _schemas(workspace: Workspace, plan: RunPlan) -> dict[str, Sequence[Any]]:
    """Return the columns of each input: as recorded, else as declared."""
    hashes = {planned.schema_hash for planned in plan.inputs.values() if planned.schema_hash}
    with workspace.catalog.reading() as session:
        seen = list_columns_of(session, hashes) if hashes else {}
    return {
        alias: seen.get(planned.schema_hash or "") or workspace.dataset(planned.dataset).columns
        for alias, planned in plan.inputs.items()
    }
