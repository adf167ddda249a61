"""Start processes when the datasets that they read are ready.

The place in the catalog's log of changes is kept as the cursor of the sensor. Dagster stores it
after it has made the runs that an evaluation asked for: so if it dies in between, the same changes
are decided on again, and the key of a run, which names the versions that it would read, makes it
one run. A cursor in the catalog would be moved before, and lose what was asked for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from typing import Any

from dagster import (
    AssetKey,
    DagsterInstance,
    DefaultSensorStatus,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    TimeWindowPartitionsDefinition,
)

from floe.execution.site import Site
from floe.execution.starting import read_page
from floe.execution.workspace import Workspace
from floe.orchestration.loading import Loading
from floe.orchestration.parts import Parts
from floe.orchestration.process_jobs import STARTED_BY_DATASETS, process_job_name
from floe.orchestration.standing import standing_workspace
from floe.spec import ProcessSpec
from floe.spec.identity import BUSINESS_DATE_TAG, dagster_key
from floe.triggers import Ready, Subscriptions

SENSOR = "floe_datasets"
SECONDS = 5
TRIGGER_TAG = "floe/trigger"
# Dagster makes runs one after the other and gives an evaluation a minute: the rest comes next.
MOST_REQUESTS, MOST_PAGES = 200, 100


@dataclass(frozen=True)
class Target:
    """The job that runs a process, and the partitions that its outputs have."""

    job: str
    partitions: PartitionsDefinition[Any] | None = None


@dataclass(frozen=True)
class Starts:
    """What is to start, and how far the log was read for it."""

    position: int
    ready: Sequence[Ready] = ()


def build_triggers(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that starts processes, where one is started by datasets."""
    processes = {
        name: process
        for name, process in loading.site.spec.processes.items()
        if process.trigger in STARTED_BY_DATASETS
    }
    if not processes:
        return parts
    targets = {name: _target(loading, parts, name, one) for name, one in processes.items()}
    jobs = [parts.jobs[target.job] for target in targets.values()]
    sensor = make_sensor(loading.site, targets, jobs)
    return replace(parts, sensors=(*parts.sensors, sensor))


def make_sensor(site: Site, targets: Mapping[str, Target], jobs: Sequence[Any]) -> SensorDefinition:
    """Return the sensor that asks for the runs of processes whose inputs are ready."""
    subscriptions = Subscriptions(site.spec)

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        workspace = standing_workspace(site)
        starts = find_starts(workspace, subscriptions, int(context.cursor or 0))
        requests = []
        for ready in starts.ready:
            asked = list(requests_for(ready, targets[ready.process], context.instance))
            if not asked:
                context.log.warning(
                    f"{ready.process} is ready for {ready.business_date}, and its partitions have "
                    "no such date: it is not started."
                )
            requests += asked
        cursor = str(starts.position)
        if requests:
            return SensorResult(run_requests=requests, cursor=cursor)
        said = f"Nothing is to start: the changes up to {starts.position} were read."
        return SensorResult(skip_reason=said, cursor=cursor)

    return SensorDefinition(
        name=SENSOR,
        description="Starts the processes that have trigger dataset or hybrid.",
        evaluation_fn=evaluate,
        jobs=jobs,
        minimum_interval_seconds=SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )


def find_starts(workspace: Workspace, subscriptions: Subscriptions, after: int) -> Starts:
    """Read the log from a position on, and say what is to start; not more than can be started."""
    ready: dict[str, Ready] = {}
    position = after
    for _ in range(MOST_PAGES):
        page = read_page(workspace, subscriptions, position)
        position = page.position
        ready |= {one.run_key: one for one in page.decisions if isinstance(one, Ready)}
        if page.last or len(ready) >= MOST_REQUESTS:
            break
    return Starts(position, list(ready.values()))


def requests_for(ready: Ready, target: Target, instance: DagsterInstance) -> Iterator[RunRequest]:
    """Yield the runs of a process that is ready: one, or one for each partition beside the date.

    There is none when the partitions do not have the date.
    """
    day = ready.business_date
    for partition in partition_keys(target.partitions, day, instance):
        beside = "" if partition is None else f"/{partition}"
        yield RunRequest(
            run_key=f"{ready.run_key}{beside}",
            job_name=target.job,
            partition_key=partition,
            tags={BUSINESS_DATE_TAG: day.isoformat(), TRIGGER_TAG: "dataset"},
        )


def partition_keys(
    partitions: PartitionsDefinition[Any] | None, day: date, instance: DagsterInstance
) -> list[str] | list[None]:
    """Return the keys that a business date has; None is the key of what has no partitions."""
    if partitions is None:
        return [None]
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        key = datetime.combine(day, time()).strftime(partitions.fmt)
        return [key] if partitions.has_partition_key(key) else []
    if isinstance(partitions, MultiPartitionsDefinition):
        return _multi_keys(partitions, day, instance)
    return list(partitions.get_partition_keys(dynamic_partitions_store=instance))


def _multi_keys(
    partitions: MultiPartitionsDefinition, day: date, instance: DagsterInstance
) -> list[str]:
    keys: list[dict[str, str]] = [{}]
    for dimension in partitions.partitions_defs:
        found = partition_keys(dimension.partitions_def, day, instance)
        keys = [{**key, dimension.name: one} for key in keys for one in found if one is not None]
    return [str(MultiPartitionKey(key)) for key in keys]


def _target(loading: Loading, parts: Parts, name: str, process: ProcessSpec) -> Target:
    job = process_job_name(name)
    if job not in parts.jobs:
        raise loading.refusal(
            ("processes", name, "trigger"),
            f"is {process.trigger}, and no job runs the process",
            "Let its outputs be assets of this project.",
        )
    keys = [AssetKey(dagster_key(one.dataset)) for one in process.outputs.values()]
    specs = [parts.specs[key] for key in keys if key in parts.specs]
    return Target(job, specs[0].partitions_def if specs else None)
