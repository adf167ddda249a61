"""Sensors: jobs that start when something happens."""

from typing import Annotated, Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.names import FunctionRef
from floe.spec.values import AnyValue, OneOrMany

Names = Annotated[tuple[str, ...], Field(min_length=1)]


class Sensor(SpecModel):
    """What every kind of sensor has."""

    poll_interval_seconds: Annotated[int, Field(ge=1)] = 4
    """How often it looks. Dagster wakes its sensors every 5 seconds."""
    enabled: bool = True
    """Whether it runs."""
    description: str = ""
    """What the sensor is for."""


class FileWatcherSensor(Sensor):
    """Starts a job once for each file that arrives."""

    type: Literal["file_watcher"]
    """`file_watcher`"""
    job: str
    """The job to start."""
    path: str
    """The folder to watch: a local one, or a URL such as s3://bucket/landing."""
    pattern: str = "*"
    """The files that count, by their path below; a regex's group `date` tells the partition."""
    pattern_type: Literal["glob", "regex"] = "glob"
    """How `pattern` is written."""
    existing: Literal["ignore", "process"] = "ignore"
    """What to do with files that are there when the sensor looks for the first time."""


class AssetSensor(Sensor):
    """Starts a job when assets have been made."""

    type: Literal["asset_sensor"]
    """`asset_sensor`"""
    job: str
    """The job to start."""
    watched_assets: Names
    """The assets: bronze.raw_customers or bronze/raw_customers."""
    when: Literal["any", "all"] = "any"
    """Whether one of them is enough, or all must be new."""


class RunStatusSensor(Sensor):
    """Starts a job or tells someone when a job ends."""

    type: Literal["run_status"]
    """`run_status`"""
    job: str | None = None
    """The job to start."""
    notify: OneOrMany = ()
    """The notification channels of platform.yaml that are told."""
    watched_jobs: tuple[str, ...] = ()
    """The jobs it watches; without any, all of them."""
    status: Literal["SUCCESS", "FAILURE", "STARTED"] = "FAILURE"
    """What it waits for."""


class CustomSensor(Sensor):
    """Starts a job when a function says so."""

    type: Literal["custom"]
    """`custom`"""
    job: str
    """The job to start."""
    target_function: FunctionRef
    """The function that decides, as module.function."""
    args: dict[str, AnyValue] = Field(default_factory=dict)
    """What it is called with."""


AnySensor = Annotated[
    FileWatcherSensor | AssetSensor | RunStatusSensor | CustomSensor, Field(discriminator="type")
]
