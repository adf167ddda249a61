"""The `orchestration` section: Dagster assets, jobs, schedules and sensors."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from floe.spec.base import SpecModel, value_error
from floe.spec.names import FunctionRef, Glob, ModuleRef, Name, check_function
from floe.spec.nearby import suggest
from floe.spec.partitions import (
    DynamicPartitions,
    MultiPartitions,
    Partitions,
    StaticPartitions,
    TimeWindow,
)
from floe.spec.values import AnyValue, Cron, OneOrMany, Zone


class BackfillPolicy(SpecModel):
    """How many partitions one run of a backfill processes."""

    max_partitions_per_run: Annotated[int, Field(ge=1)] | None = None
    """Maximum number of partitions; by default one run processes all of them."""


def _expand_policy(value: Any) -> Any:
    names = {"single_run": {}, "multi_run": {"max_partitions_per_run": 1}}
    return names.get(value, value) if isinstance(value, str) else value


PolicyOrName = Annotated[
    BackfillPolicy,
    BeforeValidator(
        _expand_policy, json_schema_input_type=Literal["single_run", "multi_run"] | BackfillPolicy
    ),
]


class AssetConfig(SpecModel):
    """Settings for all assets that match a pattern; the most specific pattern wins."""

    partitions: str | None = None
    """Partition definition of the assets."""
    automation_condition: Literal["eager", "on_cron", "on_missing"] | None = None
    """When to materialize automatically: on upstream changes, on a schedule, or when missing."""
    cron_schedule: Cron | None = None
    """With `on_cron`: the cron schedule."""
    timezone: Zone | None = None
    """With `on_cron`: its time zone; by default that of the project."""
    backfill_policy: PolicyOrName | None = None
    """Partitions per run: single_run, multi_run, or {max_partitions_per_run: N}."""
    group_name: Name | None = None
    """Group in Dagster's web interface."""
    compute_kind: str | None = None
    """Technology shown in Dagster's web interface."""


MAINTENANCE = ("analyze", "compact", "vacuum")
"""Built-in functions that an ops job can call without a module name."""


def _check_selector(text: str) -> str:
    if not text.strip() or text.count("(") != text.count(")"):
        message = f"'{text}' is not an asset selection"
        raise value_error(message, "Use a selection such as group:bronze or bronze.*.", "*")
    return text


def _check_target(name: str) -> str:
    if name in MAINTENANCE:
        return name
    if "." not in name and ":" not in name:
        hint = suggest(name, MAINTENANCE, "Write it as module.function.")
        raise value_error(f"'{name}' is not a function", hint, "vacuum")
    return check_function(name)


Selector = Annotated[str, AfterValidator(_check_selector)]
Target = Annotated[str, AfterValidator(_check_target)]


class Executor(SpecModel):
    """How the steps of a job are executed."""

    type: Literal["in_process", "multiprocess"] = "in_process"
    """Sequentially in one process, or in parallel processes."""
    max_concurrent: Annotated[int, Field(ge=1)] | None = None
    """With `multiprocess`: maximum number of concurrent steps."""


def _expand_type(value: Any) -> Any:
    return {"type": value} if isinstance(value, str) else value


ExecutorOrType = Annotated[
    Executor,
    BeforeValidator(
        _expand_type, json_schema_input_type=Literal["in_process", "multiprocess"] | Executor
    ),
]


class BatchJob(SpecModel):
    """Materializes a selection of assets."""

    type: Literal["batch"]
    """`batch`"""
    selection: Annotated[tuple[Selector, ...], Field(min_length=1)]
    """The assets: group:x, tag:x, asset:x, patterns, +a, a+, a+2, and, or, not."""
    description: str = ""
    """What the job is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags added to its runs."""
    executor: ExecutorOrType | None = None
    """How to execute its steps: in_process, multiprocess, or {type, max_concurrent}."""


class OpsJob(SpecModel):
    """Calls a function, such as the maintenance functions vacuum, compact and analyze."""

    type: Literal["ops"]
    """`ops`"""
    target_function: Target
    """Function or Dagster op, as module.function; or vacuum, compact or analyze."""
    args: dict[str, AnyValue] = Field(default_factory=dict)
    """Its arguments; for a Dagster op, its config and inputs."""
    description: str = ""
    """What the job is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags added to its runs."""


Job = Annotated[BatchJob | OpsJob, Field(discriminator="type")]


class Schedule(SpecModel):
    """Starts a job on a cron schedule."""

    job: str
    """The job to start."""
    cron_schedule: Cron
    """When to start the job."""
    timezone: Zone | None = None
    """Time zone of the schedule; by default that of the project."""
    enabled: bool = True
    """Whether it is active; often ${SCHEDULE_ENABLED:false}."""
    partition_selector: Literal["latest", "all"] = "latest"
    """For a partitioned job: run the newest partition, or all of them."""
    description: str = ""
    """What the schedule is for."""


Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Sensor(SpecModel):
    """The keys that all kinds of sensors have in common."""

    poll_interval_seconds: Annotated[int, Field(ge=1)] = 4
    """Seconds between checks. Dagster wakes its sensors every 5 seconds."""
    enabled: bool = True
    """Whether it is active."""
    description: str = ""
    """What the sensor is for."""


class FileWatcherSensor(Sensor):
    """Starts a job once for each file that arrives."""

    type: Literal["file_watcher"]
    """`file_watcher`"""
    job: str
    """The job to start."""
    path: str
    """Folder to watch: a local path, or a URL such as s3://bucket/landing."""
    pattern: str = "*"
    """Files to match, by path below the folder; a regex group `date` gives the partition."""
    pattern_type: Literal["glob", "regex"] = "glob"
    """Syntax of `pattern`."""
    existing: Literal["ignore", "process"] = "ignore"
    """What to do with files that exist when the sensor first runs."""


class AssetSensor(Sensor):
    """Starts a job when assets have been materialized."""

    type: Literal["asset_sensor"]
    """`asset_sensor`"""
    job: str
    """The job to start."""
    watched_assets: Names
    """The assets: bronze.raw_customers or bronze/raw_customers."""
    when: Literal["any", "all"] = "any"
    """Whether any one asset is enough, or all must be new."""


class RunStatusSensor(Sensor):
    """Starts a job or sends a notification when a run of a job changes state."""

    type: Literal["run_status"]
    """`run_status`"""
    job: str | None = None
    """The job to start."""
    notify: OneOrMany = ()
    """Notification channels in platform.yaml."""
    watched_jobs: tuple[str, ...] = ()
    """Jobs to watch; by default all of them."""
    status: Literal["SUCCESS", "FAILURE", "STARTED"] = "FAILURE"
    """Run state that fires the sensor."""


class CustomSensor(Sensor):
    """Starts a job when a function decides to."""

    type: Literal["custom"]
    """`custom`"""
    job: str
    """The job to start."""
    target_function: FunctionRef
    """The function that decides, as module.function."""
    args: dict[str, AnyValue] = Field(default_factory=dict)
    """Its arguments."""


AnySensor = Annotated[
    FileWatcherSensor | AssetSensor | RunStatusSensor | CustomSensor, Field(discriminator="type")
]


class PartitionRange(SpecModel):
    """From one partition key to another, both included."""

    start: str
    """The first key."""
    end: str
    """The last key."""


class Backfill(SpecModel):
    """Runs a job for a range of partitions, in order, in batches."""

    job: str
    """The job to run."""
    partition_range: PartitionRange
    """Range of partitions."""
    partitions: str | None = None
    """Partition definition, if the job's assets have more than one."""
    batch_size: Annotated[int, Field(ge=1)] = 1
    """Number of partitions per run."""
    description: str = ""
    """What the backfill is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags added to its runs."""


__all__ = [
    "AnySensor",
    "AssetConfig",
    "AssetSensor",
    "Backfill",
    "BackfillPolicy",
    "BatchJob",
    "CustomSensor",
    "Dbt",
    "DynamicPartitions",
    "Executor",
    "FileWatcherSensor",
    "Job",
    "MultiPartitions",
    "OpsJob",
    "Orchestration",
    "PartitionRange",
    "Partitions",
    "RunStatusSensor",
    "Schedule",
    "StaticPartitions",
    "TimeWindow",
]


class Dbt(SpecModel):
    """How to load the models of a dbt project as assets."""

    manifest_path: str | None = None
    """Path of the manifest; by default target/manifest.json in the dbt project."""
    project_dir: str | None = None
    """Folder of the dbt project; by default the path of the dbt transform."""
    profiles_dir: str | None = None
    """Folder of profiles.yml; by default floe generates one for the platform's Spark."""
    target: str | None = None
    """Target of the dbt profile."""
    observability_level: Literal["per_model", "job_level"] = "per_model"
    """Whether to report each model separately, or the dbt run as a whole."""


class Orchestration(SpecModel):
    """Assets, partitions, jobs, schedules, sensors and backfills."""

    asset_modules: tuple[ModuleRef, ...] = ()
    """Python modules or packages to load assets from; a leading dot is relative."""
    dbt: Dbt | None = None
    """The dbt project whose models are assets."""
    partitions: dict[Name, Partitions] = Field(default_factory=dict)
    """Partition definitions, by name."""
    assets: dict[Glob, AssetConfig] = Field(default_factory=dict)
    """Settings for assets, by name pattern."""
    jobs: dict[Name, Job] = Field(default_factory=dict)
    """Jobs, by name."""
    schedules: dict[Name, Schedule] = Field(default_factory=dict)
    """Schedules, by name."""
    sensors: dict[Name, AnySensor] = Field(default_factory=dict)
    """Sensors, by name."""
    backfills: dict[Name, Backfill] = Field(default_factory=dict)
    """Backfills, by name."""
