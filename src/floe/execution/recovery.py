"""Resume interrupted runs: published outputs stay, the rest is done again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

from floe.catalog.datasets import get_dataset
from floe.catalog.processes import get_process
from floe.catalog.runs import (
    LOST,
    STARTED,
    SUCCESS,
    find_run,
    get_run,
    list_children,
    list_open_runs,
)
from floe.catalog.version_queries import list_run_versions
from floe.catalog.versions import READY, SUPERSEDED
from floe.errors import FloeError
from floe.execution.os_processes import is_dead
from floe.execution.outputs import find_published_by, report_outputs
from floe.execution.planning import RunOptions, plan_run
from floe.execution.reporting import Failure, ReportedInput, ReportedOutput, Reporter, RunFacts
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.repair import Repaired, repair_versions
from floe.execution.versions.retractions import finish_retractions
from floe.execution.workspace import Workspace
from floe.spec.identity import floe_process, process_of_key

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.tables import ProcessRun

KILLED = "The process that ran it was killed."


class StillRunningError(FloeError):
    """A run cannot be resumed while it is running."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id} is still running. Wait for it to finish, or stop it first.")


class ForeignRunError(FloeError):
    """A run does not belong to a process of this project."""

    def __init__(self, run_id: str, key: str) -> None:
        super().__init__(
            f"Run {run_id} belongs to '{key}', which is not a process of this project."
        )


@dataclass(frozen=True)
class RemainingWork:
    """The work that is left of an interrupted run."""

    options: RunOptions
    resumes: str
    skip: Sequence[str]
    """The aliases of outputs that are already published."""


def repair(workspace: Workspace, sparks: SparkSessions) -> list[Repaired]:
    """Finish what killed processes left: versions, retractions, then runs."""
    repaired = repair_versions(workspace, sparks)
    finish_retractions(workspace, sparks)
    for run_id in _dead_runs(workspace):
        _report_end(workspace, run_id)
    return repaired


def find_remaining_work(workspace: Workspace, run_id: str) -> RemainingWork | None:
    """Return the remaining work of a run, or None if it succeeded."""
    with workspace.catalog.reading() as session:
        run = get_run(session, run_id)
        key = get_process(session, run.process_id).process_key
        tags = _tags_made(session, run_id)
    process = process_of_key(key)
    if process.namespace != floe_process(workspace.site.spec.name, "").namespace:
        raise ForeignRunError(run_id, key)
    if run.status == SUCCESS:
        return None
    if run.status == STARTED or (run.status == LOST and not is_dead(_holder(run))):
        raise StillRunningError(run_id)
    spec = workspace.site.spec.processes.get(process.name)
    outputs = {} if spec is None else spec.outputs
    skip = [alias for alias, output in outputs.items() if output.dataset in tags]
    return RemainingWork(_options_of(run, process.name), run_id, skip)


@dataclass(frozen=True)
class Batch:
    """A batch, derived from its runs."""

    business_date: date
    partition: str | None
    last: Mapping[str, str]
    """The last run id of each process."""
    done: frozenset[str]
    """The processes that succeeded."""


def find_batch(workspace: Workspace, batch: str) -> Batch:
    """Return a batch, which must have runs."""
    last: dict[str, str] = {}
    done: set[str] = set()
    own = floe_process(workspace.site.spec.name, "").namespace
    with workspace.catalog.reading() as session:
        runs = list_children(session, batch)
        for run in runs:
            key = get_process(session, run.process_id).process_key
            if process_of_key(key).namespace != own:
                raise ForeignRunError(batch, key)
            name = process_of_key(key).name
            last[name] = run.run_uuid
            if run.status == SUCCESS:
                done.add(name)
    assert runs[-1].business_date is not None, "a process of floe runs for a date"
    return Batch(runs[-1].business_date, runs[-1].partition_key, last, frozenset(done))


def is_batch(workspace: Workspace, run_id: str) -> bool:
    """Tell whether an id is a batch: it has child runs, and is not a run itself."""
    with workspace.catalog.reading() as session:
        return find_run(session, run_id) is None and bool(list_children(session, run_id))


def _dead_runs(workspace: Workspace) -> list[str]:
    prefix = f"{floe_process(workspace.site.spec.name, '').namespace}/"
    with workspace.catalog.reading() as session:
        return [run.run_uuid for run in list_open_runs(session, prefix) if is_dead(_holder(run))]


def _holder(run: "ProcessRun") -> str:
    return str(_facet(run).get("holder", ""))


def _report_end(workspace: Workspace, run_id: str) -> None:
    """Report the end of a dead run: SUCCESS if all its outputs exist, else FAILED."""
    with workspace.catalog.reading() as session:
        run = get_run(session, run_id)
        name = process_of_key(get_process(session, run.process_id).process_key).name
        made_tags = _tags_made(session, run_id)
    spec = workspace.site.spec.processes.get(name)
    if spec is None or run.business_date is None:
        return
    noted = _facet(run)
    inputs = [
        ReportedInput(spec.inputs[alias].dataset, tag)
        for alias, tags in noted.get("inputs", {}).items()
        if alias in spec.inputs
        for tag in tags
    ]
    facts = RunFacts(run_id, name, run.business_date, noted, run.parent_run_uuid, inputs)
    reporter = Reporter(workspace)
    if all(output.dataset in made_tags for output in spec.outputs.values()):
        reporter.completed(facts, _outputs(workspace, _options_of(run, name), made_tags))
    else:
        reporter.failed(facts, Failure(KILLED))


def _outputs(
    workspace: Workspace, options: RunOptions, tags: Mapping[str, str]
) -> list[ReportedOutput]:
    """Return the outputs to report for a dead run."""
    assert options.as_run is not None
    try:
        plan = plan_run(workspace, options)
    except FloeError:
        # The project has changed since then: only the tags of the versions are known.
        return [ReportedOutput(dataset, tag) for dataset, tag in tags.items()]
    return report_outputs(workspace, plan, find_published_by(workspace, plan, options.as_run), {})


def _options_of(run: "ProcessRun", process: str) -> RunOptions:
    """Return a run's request: the same parameters, reading the same input versions."""
    noted = _facet(run)
    return RunOptions(
        process,
        run.business_date,
        noted.get("partition"),
        {name: str(value) for name, value in noted.get("params", {}).items()},
        as_run=run.run_uuid,
    )


def _tags_made(session: "Session", run_id: str) -> dict[str, str]:
    """Return the tag that a run published of each dataset."""
    return {
        get_dataset(session, version.dataset_id).name: version.version_tag
        for version in list_run_versions(session, run_id)
        if version.state in (READY, SUPERSEDED)
    }


def _facet(run: "ProcessRun") -> dict[str, Any]:
    noted = (run.facets_json or {}).get("floe")
    kept = noted if isinstance(noted, dict) else {}
    return {name: value for name, value in kept.items() if not name.startswith("_")}
