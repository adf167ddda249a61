"""The shape of an output: one hash of all that decides on its columns.

To ask Spark for the columns of a query costs as much as to plan it. What had the same shape when
it was written last has the same columns now.
"""

import hashlib
import json
from typing import Any

from floe.execution.planning import RunPlan
from floe.execution.workspace import Workspace


def shape_of(workspace: Workspace, plan: RunPlan, alias: str) -> str | None:
    """Return the shape of an output of Spark SQL; None for what can give anything at any time."""
    spec = plan.spec
    sqls = [spec.sql, *(step.sql for step in spec.steps)]
    if spec.runs_on != "spark_sql" or any(step.sql is None for step in spec.steps):
        return None
    schemas = {alias: one.schema_hash for alias, one in plan.inputs.items()}
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
