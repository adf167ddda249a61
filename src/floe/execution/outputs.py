"""The outputs of a run as they are reported, whichever run has made them."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from floe.catalog.schemas import list_columns
from floe.catalog.shown import details_of
from floe.catalog.versions import READY, SUPERSEDED, list_of_run
from floe.execution.attempts import Made
from floe.execution.lineage import trace_outputs
from floe.execution.planning import RunPlan
from floe.execution.reporting import ReportedOutput
from floe.execution.shapes import shape_of
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from floe.catalog.tables import DatasetVersion


def made_of(
    workspace: Workspace, plan: RunPlan, versions: "Iterable[DatasetVersion]"
) -> dict[str, Made]:
    """Return versions that are there as what a run has made, by alias."""
    by_number = {version.dataset_id: version for version in versions}
    found = {}
    with workspace.catalog.reading() as session:
        for alias, output in plan.outputs.items():
            version = by_number.get(workspace.dataset_id(output.dataset, session))
            if version is not None:
                found[alias] = Made(
                    output.dataset,
                    version.version_tag,
                    version.row_count,
                    version.size_bytes,
                    list_columns(session, version.schema_hash),
                )
    return found


def made_by_other(workspace: Workspace, plan: RunPlan, run_id: str) -> dict[str, Made]:
    """Return what another run of the process has published.

    What other SQL may have made comes without its columns: this plan says nothing of them.
    """
    with workspace.catalog.reading() as session:
        there = [one for one in list_of_run(session, run_id) if one.state in (READY, SUPERSEDED)]
    shapes = {one.version_tag: details_of(one).get("shape") for one in there}
    return {
        alias: made if _same_work(workspace, plan, alias, shapes[made.tag]) else made.unknown()
        for alias, made in made_of(workspace, plan, there).items()
    }


def _same_work(workspace: Workspace, plan: RunPlan, alias: str, shape: object) -> bool:
    return shape is not None and shape == shape_of(workspace, plan, alias)


def report_outputs(
    workspace: Workspace, plan: RunPlan, made: Mapping[str, Made], explained: Mapping[str, str]
) -> list[ReportedOutput]:
    """Return what is told of outputs, with where their columns come from.

    `explained` is what Spark said of those that functions have made.
    """
    columns = {alias: one.columns for alias, one in made.items()}
    told = {alias: explained[alias] for alias in made if alias in explained}
    lineage = trace_outputs(workspace, plan, columns, told)
    return [
        ReportedOutput(one.dataset, one.tag, one.rows, one.size, one.columns, lineage.get(alias))
        for alias, one in made.items()
    ]
