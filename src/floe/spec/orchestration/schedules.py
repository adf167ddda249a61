"""Schedules: jobs that start by the clock."""

from typing import Literal

from floe.spec.base import SpecModel
from floe.spec.values import Cron, Zone


class Schedule(SpecModel):
    """Starts a job by the clock."""

    job: str
    """The job to start."""
    cron_schedule: Cron
    """When."""
    timezone: Zone | None = None
    """The zone of the clock, when not that of the project."""
    enabled: bool = True
    """Whether it runs; often ${SCHEDULE_ENABLED:false}."""
    partition_selector: Literal["latest", "all"] = "latest"
    """Of a partitioned job: the newest partition, or all of them."""
    description: str = ""
    """What the schedule is for."""
