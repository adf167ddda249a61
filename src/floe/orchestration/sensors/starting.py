"""What every kind of sensor does in the same way: be defined, and ask for runs of its job."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    partition_loading_context,
)

from floe.orchestration.jobs import assets_of, partitions_of
from floe.orchestration.loading import Loading
from floe.orchestration.newest import newest_keys
from floe.orchestration.parts import AnyPartitions, Parts
from floe.spec.findings import KeyPath
from floe.spec.orchestration.sensors import Sensor

Evaluate = Callable[[SensorEvaluationContext], SensorResult]

SENSORS = "floe/sensors"
"""The tag of a run that sensors led to: their names, the first one first."""


@dataclass(frozen=True)
class Declared:
    """A sensor as floe.yaml declares it, on the parts that were made before it."""

    loading: Loading
    parts: Parts
    name: str

    @property
    def path(self) -> KeyPath:
        return ("orchestration", "sensors", self.name)

    def define(self, sensor: Sensor, job: str | None, evaluate: Evaluate) -> SensorDefinition:
        """Make Dagster's sensor of what is to be evaluated at each look."""
        running = DefaultSensorStatus.RUNNING if sensor.enabled else DefaultSensorStatus.STOPPED
        return SensorDefinition(
            name=self.name,
            evaluation_fn=evaluate,
            job=None if job is None else self.parts.jobs[job],
            minimum_interval_seconds=sensor.poll_interval_seconds,
            description=sensor.description or None,
            default_status=running,
        )

    def starter(self, job: str) -> "Starter":
        """Return what asks for runs of a job."""
        keys = assets_of(self.loading, self.parts, job)
        return Starter(self.name, partitions_of(self.parts, keys))


@dataclass(frozen=True)
class Cause:
    """Why a run is asked for."""

    key: str | None = None
    """What it is for. Dagster starts one run for it, however often it is asked."""
    partition: str | None = None
    """The partition key that the cause stands for."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Tags that only this cause brings."""
    parent_tags: Mapping[str, str] = field(default_factory=dict)
    """The tags of the run that led to it."""


@dataclass(frozen=True)
class Starter:
    """Asks for runs of a job, with the partition that it has."""

    sensor: str
    partitions: AnyPartitions | None

    def requests(self, instance: DagsterInstance, cause: Cause) -> Iterator[RunRequest]:
        """Ask for the run of the cause's partition when the job has it, else of the newest."""
        tags = {**cause.tags, SENSORS: self._chain(cause.parent_tags)}
        if self.partitions is None:
            yield RunRequest(run_key=cause.key, tags=tags)
        elif self.has_key(instance, cause.partition):
            yield RunRequest(run_key=cause.key, partition_key=cause.partition, tags=tags)
        else:
            for key in newest_keys(self.partitions, store=instance):
                run_key = None if cause.key is None else f"{cause.key} {key}"
                yield RunRequest(run_key=run_key, partition_key=key, tags=tags)

    def has_key(self, instance: DagsterInstance, key: str | None) -> bool:
        """Tell whether the job can be run for a partition key now."""
        if self.partitions is None or key is None:
            return False
        with partition_loading_context(dynamic_partitions_store=instance):
            return self.partitions.has_partition_key(key)

    def led_to(self, tags: Mapping[str, str]) -> bool:
        """Tell whether this sensor led to the run that has these tags: it must not go on so."""
        return self.sensor in tags.get(SENSORS, "").split(",")

    def _chain(self, tags: Mapping[str, str]) -> str:
        return ",".join(name for name in (tags.get(SENSORS), self.sensor) if name)
