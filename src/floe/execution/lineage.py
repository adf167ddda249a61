"""Column lineage of a run's outputs, from its SQL and the schemas that its inputs really have."""

from collections.abc import Mapping, Sequence
from typing import Any

from floe.catalog.schemas import Column
from floe.execution.planning import RunPlan
from floe.execution.workspace import Workspace


def trace_outputs(
    workspace: Workspace, plan: RunPlan, columns: Mapping[str, Sequence[Column]]
) -> dict[str, Mapping[str, Any]]:
    return {}
