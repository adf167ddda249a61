"""The `orchestration` section: what becomes assets, jobs, schedules and sensors of Dagster."""

from typing import Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.names import ModuleRef, Name
from floe.spec.orchestration.assets import AssetConfig, BackfillPolicy
from floe.spec.orchestration.backfills import Backfill, PartitionRange
from floe.spec.orchestration.jobs import BatchJob, Executor, Job, OpsJob
from floe.spec.orchestration.partitions import (
    DynamicPartitions,
    MultiPartitions,
    Partitions,
    StaticPartitions,
    TimeWindow,
)
from floe.spec.orchestration.schedules import Schedule
from floe.spec.orchestration.sensors import (
    AnySensor,
    AssetSensor,
    CustomSensor,
    FileWatcherSensor,
    RunStatusSensor,
)
from floe.spec.patterns import Glob

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
    """How the models of a dbt project become assets."""

    manifest_path: str | None = None
    """The manifest; by default target/manifest.json of the project."""
    project_dir: str | None = None
    """The dbt project; by default the path of the dbt transform."""
    profiles_dir: str | None = None
    """Where profiles.yml is; without it floe generates one for the platform's Spark."""
    target: str | None = None
    """The target of the profile."""
    observability_level: Literal["per_model", "job_level"] = "per_model"
    """Whether each model is observed, or the dbt run as one."""


class Orchestration(SpecModel):
    """What is discovered, partitioned, scheduled and watched."""

    asset_modules: tuple[ModuleRef, ...] = ()
    """Python modules or packages whose assets are loaded; a leading dot is relative."""
    dbt: Dbt | None = None
    """The dbt project whose models are assets."""
    partitions: dict[Name, Partitions] = Field(default_factory=dict)
    """Partition definitions, by name."""
    assets: dict[Glob, AssetConfig] = Field(default_factory=dict)
    """Settings for the assets that a pattern matches."""
    jobs: dict[Name, Job] = Field(default_factory=dict)
    """Jobs, by name."""
    schedules: dict[Name, Schedule] = Field(default_factory=dict)
    """Schedules, by name."""
    sensors: dict[Name, AnySensor] = Field(default_factory=dict)
    """Sensors, by name."""
    backfills: dict[Name, Backfill] = Field(default_factory=dict)
    """Backfills, by name."""
