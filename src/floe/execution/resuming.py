"""Go on where a run was cut off: what it published stays, the rest is done again."""

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
from floe.catalog.versions import READY, SUPERSEDED, list_of_run
from floe.errors import FloeError
from floe.execution.holders import is_dead
from floe.execution.outputs import made_by_other, report_outputs
from floe.execution.planning import Wish, plan_run
from floe.execution.reporting import Failure, ReportedInput, ReportedOutput, Reporter, RunFacts
from floe.execution.sparks import Sparks
from floe.execution.versions.repair import Repaired, repair_versions
from floe.execution.versions.retracting import finish_retractions
from floe.execution.workspace import Workspace
from floe.spec.identity import floe_process, process_of_key

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from floe.catalog.tables import ProcessRun

KILLED = "The process that ran it was killed."


class StillRunningError(FloeError):
    """A run cannot be resumed while it runs."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"Run {run_id} is still running. Wait for its end, or stop it first.")


class ForeignRunError(FloeError):
    """A run is not one of floe's own processes."""

    def __init__(self, run_id: str, key: str) -> None:
        super().__init__(f"Run {run_id} is of '{key}', which this project does not run.")


@dataclass(frozen=True)
class Remainder:
    """What is left to do of a run."""

    wish: Wish
    resumes: str
    skip: Sequence[str]
    """The outputs that are there."""


def repair(workspace: Workspace, sparks: Sparks) -> list[Repaired]:
    """Bring all to an end that a killed process left: versions, retractions, then runs."""
    repaired = repair_versions(workspace, sparks)
    finish_retractions(workspace, sparks)
    for run_id in _dead_runs(workspace):
        _bury(workspace, run_id)
    return repaired


def remainder_of(workspace: Workspace, run_id: str) -> Remainder | None:
    """Say what is left to do of a run; None when it has done all it was to do."""
    with workspace.catalog.reading() as session:
        run = get_run(session, run_id)
        key = get_process(session, run.process_id).process_key
        made = _made(session, run_id)
    process = process_of_key(key)
    if process.namespace != floe_process(workspace.site.spec.name, "").namespace:
        raise ForeignRunError(run_id, key)
    if run.status == SUCCESS:
        return None
    if run.status == STARTED or (run.status == LOST and not is_dead(_holder(run))):
        raise StillRunningError(run_id)
    spec = workspace.site.spec.processes.get(process.name)
    outputs = {} if spec is None else spec.outputs
    skip = [alias for alias, output in outputs.items() if output.dataset in made]
    return Remainder(_wish_of(run, process.name), run_id, skip)


@dataclass(frozen=True)
class Batch:
    """What is known of a batch by the runs that belong to it."""

    business_date: date
    partition: str | None
    last: Mapping[str, str]
    """The last run of each process."""
    done: frozenset[str]
    """The processes that succeeded."""


def children_of(workspace: Workspace, batch: str) -> Batch:
    """Return what is known of a batch that has runs."""
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
    """Tell whether an id is that of a batch: runs belong to it, and it is none itself."""
    with workspace.catalog.reading() as session:
        return find_run(session, run_id) is None and bool(list_children(session, run_id))


def _dead_runs(workspace: Workspace) -> list[str]:
    prefix = f"{floe_process(workspace.site.spec.name, '').namespace}/"
    with workspace.catalog.reading() as session:
        return [run.run_uuid for run in list_open_runs(session, prefix) if is_dead(_holder(run))]


def _holder(run: "ProcessRun") -> str:
    return str(_facet(run).get("holder", ""))


def _bury(workspace: Workspace, run_id: str) -> None:
    """Report the end of a run that could not do so: it succeeded if all its outputs are there."""
    with workspace.catalog.reading() as session:
        run = get_run(session, run_id)
        name = process_of_key(get_process(session, run.process_id).process_key).name
        made = _made(session, run_id)
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
    if all(output.dataset in made for output in spec.outputs.values()):
        reporter.completed(facts, _outputs(workspace, _wish_of(run, name), made))
    else:
        reporter.failed(facts, Failure(KILLED))


def _outputs(workspace: Workspace, wish: Wish, made: Mapping[str, str]) -> list[ReportedOutput]:
    """Return what is told of the outputs of a run that could not tell it."""
    assert wish.as_run is not None
    try:
        plan = plan_run(workspace, wish)
    except FloeError:
        # The project has changed since: that the versions are there is all that is known.
        return [ReportedOutput(dataset, tag) for dataset, tag in made.items()]
    return report_outputs(workspace, plan, made_by_other(workspace, plan, wish.as_run), {})


def _wish_of(run: "ProcessRun", process: str) -> Wish:
    """What a run was to do: with the same parameters, and reading the very same versions."""
    noted = _facet(run)
    return Wish(
        process,
        run.business_date,
        noted.get("partition"),
        {name: str(value) for name, value in noted.get("params", {}).items()},
        as_run=run.run_uuid,
    )


def _made(session: "Session", run_id: str) -> dict[str, str]:
    """Return the datasets that a run has made a version of, with its tag."""
    return {
        get_dataset(session, version.dataset_id).name: version.version_tag
        for version in list_of_run(session, run_id)
        if version.state in (READY, SUPERSEDED)
    }


def _facet(run: "ProcessRun") -> dict[str, Any]:
    noted = (run.facets_json or {}).get("floe")
    kept = noted if isinstance(noted, dict) else {}
    return {name: value for name, value in kept.items() if not name.startswith("_")}
