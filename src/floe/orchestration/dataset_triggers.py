"""Start processes when their input datasets are ready.

The sensor's cursor is the position in the catalog's change log. Dagster stores it after creating
the requested runs, so after a crash in between, the same changes are evaluated again. The run key
contains the input versions, so each run is created once. A cursor in the catalog would be moved
before the runs exist, and requests could be lost.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dagster import (
    AssetKey,
    DagsterInstance,
    DefaultSensorStatus,
    PartitionsDefinition,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from floe.execution.site import Site
from floe.execution.trigger_decisions import read_page
from floe.execution.workspace import Workspace
from floe.orchestration.business_dates import keys_of_date
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.processes import STARTED_BY_DATASETS, process_job_name
from floe.orchestration.runtime import shared_workspace
from floe.spec import ProcessSpec
from floe.spec.identity import BUSINESS_DATE_TAG, dagster_key
from floe.triggers import Ready, Subscriptions

SENSOR = "floe_datasets"
SECONDS = 5
TRIGGER_TAG = "floe/trigger"
# Dagster creates runs one by one and limits an evaluation to a minute; the rest follows next
# time.
MOST_REQUESTS, MOST_PAGES = 200, 100


@dataclass(frozen=True)
class Target:
    """The job of a process, and the partitions of its outputs."""

    job: str
    partitions: PartitionsDefinition[Any] | None = None


@dataclass(frozen=True)
class Starts:
    """The processes to start, and the log position up to which they were decided."""

    position: int
    ready: Sequence[Ready] = ()


def build_triggers(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that starts processes, if any has trigger dataset or hybrid."""
    processes = {
        name: process
        for name, process in loading.site.spec.processes.items()
        if process.trigger in STARTED_BY_DATASETS
    }
    if not processes:
        return parts
    targets = {name: _target(loading, parts, name, process) for name, process in processes.items()}
    jobs = [parts.jobs[target.job] for target in targets.values()]
    sensor = make_sensor(loading.site, targets, jobs)
    return replace(parts, sensors=(*parts.sensors, sensor))


def make_sensor(site: Site, targets: Mapping[str, Target], jobs: Sequence[Any]) -> SensorDefinition:
    """Return the sensor that requests runs of processes whose inputs are ready."""
    subscriptions = Subscriptions(site.spec)

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        workspace = shared_workspace(site)
        starts = find_starts(workspace, subscriptions, int(context.cursor or 0))
        requests = []
        for ready in starts.ready:
            runs = list(requests_for(ready, targets[ready.process], context.instance))
            if not runs:
                context.log.warning(
                    f"{ready.process} is ready for {ready.business_date} but not started: its "
                    "partitions do not include this date."
                )
            requests += runs
        cursor = str(starts.position)
        if requests:
            return SensorResult(run_requests=requests, cursor=cursor)
        message = f"Nothing to start: read the changes up to {starts.position}."
        return SensorResult(skip_reason=message, cursor=cursor)

    return SensorDefinition(
        name=SENSOR,
        description="Starts the processes that have trigger dataset or hybrid.",
        evaluation_fn=evaluate,
        jobs=jobs,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )


def find_starts(workspace: Workspace, subscriptions: Subscriptions, after: int) -> Starts:
    """Return the processes to start for changes after a position, up to a limit."""
    ready: dict[str, Ready] = {}
    position = after
    for _ in range(MOST_PAGES):
        page = read_page(workspace, subscriptions, position)
        position = page.position
        ready |= {
            decision.run_key: decision for decision in page.decisions if isinstance(decision, Ready)
        }
        if page.last or len(ready) >= MOST_REQUESTS:
            break
    return Starts(position, list(ready.values()))


def requests_for(ready: Ready, target: Target, instance: DagsterInstance) -> Iterator[RunRequest]:
    """Yield the runs of a ready process: one, or one per partition of the date.

    There is none if the partitions do not include the date.
    """
    day = ready.business_date
    for partition in keys_of_date(target.partitions, day, instance):
        suffix = "" if partition is None else f"/{partition}"
        yield RunRequest(
            run_key=f"{ready.run_key}{suffix}",
            job_name=target.job,
            partition_key=partition,
            tags={BUSINESS_DATE_TAG: day.isoformat(), TRIGGER_TAG: "dataset"},
        )


def _target(loading: Loading, parts: Parts, name: str, process: ProcessSpec) -> Target:
    job = process_job_name(name)
    if job not in parts.jobs:
        raise loading.refusal(
            ("processes", name, "trigger"),
            f"is {process.trigger}, but no job runs the process",
            "Its outputs must be assets of this project.",
        )
    keys = [AssetKey(dagster_key(output.dataset)) for output in process.outputs.values()]
    specs = [parts.specs[key] for key in keys if key in parts.specs]
    return Target(job, specs[0].partitions_def if specs else None)
