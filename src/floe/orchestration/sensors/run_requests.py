"""Shared by all sensors: their definition, and run requests for their job."""

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
from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.orchestration.partitions import newest_keys
from floe.spec.findings import KeyPath
from floe.spec.orchestration import Sensor

Evaluate = Callable[[SensorEvaluationContext], SensorResult]

SENSORS = "floe/sensors"
"""The run tag with the names of the sensors that triggered it, first to last."""


@dataclass(frozen=True)
class DeclaredSensor:
    """A sensor of floe.yaml, with the definitions built before it."""

    loading: Loading
    parts: Parts
    name: str

    @property
    def path(self) -> KeyPath:
        return ("orchestration", "sensors", self.name)

    def define(self, sensor: Sensor, job: str | None, evaluate: Evaluate) -> SensorDefinition:
        """Return Dagster's sensor with an evaluation function."""
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
        """Return the starter of a job."""
        keys = assets_of(self.loading, self.parts, job)
        return Starter(self.name, partitions_of(self.parts, keys))


@dataclass(frozen=True)
class Cause:
    """The reason for a run request."""

    key: str | None = None
    """The run key. Dagster starts one run per key."""
    partition: str | None = None
    """The partition key of the cause."""
    tags: Mapping[str, str] = field(default_factory=dict)
    """Extra tags for the run."""
    parent_tags: Mapping[str, str] = field(default_factory=dict)
    """The tags of the run that caused it."""


@dataclass(frozen=True)
class Starter:
    """Requests runs of a job, with its partitions."""

    sensor: str
    partitions: AnyPartitions | None

    def requests(self, instance: DagsterInstance, cause: Cause) -> Iterator[RunRequest]:
        """Yield a run of the cause's partition if the job has it, else of the newest."""
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
        """Tell whether the job has a partition key now."""
        if self.partitions is None or key is None:
            return False
        with partition_loading_context(dynamic_partitions_store=instance):
            return self.partitions.has_partition_key(key)

    def triggered(self, tags: Mapping[str, str]) -> bool:
        """Tell whether this sensor triggered the run with these tags, to prevent loops."""
        return self.sensor in tags.get(SENSORS, "").split(",")

    def _chain(self, tags: Mapping[str, str]) -> str:
        return ",".join(name for name in (tags.get(SENSORS), self.sensor) if name)
