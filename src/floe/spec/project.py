"""The root of floe.yaml."""

from typing import Literal

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.calendars import Calendar, CalendarSpec, get_calendar
from floe.spec.datasets import DatasetSpec
from floe.spec.governance import Governance, Owner
from floe.spec.names import DatasetName, ProcessName, ProfileName, ProjectName
from floe.spec.orchestration import Orchestration
from floe.spec.processes import ProcessSpec
from floe.spec.values import AnyValue, OneOrMany, Zone


class DbtTransform(SpecModel):
    """A dbt project; each of its models is a dataset."""

    type: Literal["dbt"]
    """`dbt`"""
    path: str = "dbt"
    """Folder of the dbt project."""
    target: str | None = None
    """Target of the dbt profile."""
    vars: dict[str, AnyValue] = Field(default_factory=dict)
    """Variables passed to dbt."""
    select: tuple[str, ...] = ()
    """Models to include, in dbt selection syntax."""
    exclude: tuple[str, ...] = ()
    """Models to exclude."""


class Notify(SpecModel):
    """Notification channels in platform.yaml, by type of event."""

    failure: OneOrMany = ()
    """When a run fails."""
    sla: OneOrMany = ()
    """When an SLA is at risk or breached."""
    check: OneOrMany = ()
    """When a check rejects a version."""
    drift: OneOrMany = ()
    """When observed lineage differs from declared lineage."""


class Observability(SpecModel):
    """What runs report. platform.yaml declares where it is sent."""

    traces: bool = True
    """Send spans of runs to the OpenTelemetry collector, if one is configured."""
    column_lineage: bool = True
    """Whether to collect column lineage."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Resource attributes added to every span, such as the cost centre."""
    notify: Notify = Notify()
    """Which channels to notify of what."""


SECTIONS: tuple[tuple[str, ...], ...] = (
    ("calendars",),
    ("datasets",),
    ("processes",),
    ("orchestration", "partitions"),
    ("orchestration", "assets"),
    ("orchestration", "jobs"),
    ("orchestration", "schedules"),
    ("orchestration", "sensors"),
    ("orchestration", "backfills"),
)
"""Sections that map names to definitions. Each may include other files."""


class ProjectSpec(SpecModel):
    """A project: its datasets, its processes, and how to run and monitor them."""

    name: ProjectName
    """Name of the project; part of the key of each process."""
    version: str = ""
    """Version of the project, for information only."""
    description: str = ""
    """What the project is about."""
    timezone: Zone = "UTC"
    """Default time zone of business dates, schedules and SLAs."""
    calendar: str | None = None
    """Default calendar of SLAs and mappings."""
    storage: ProfileName = "default"
    """Storage profile in platform.yaml."""
    catalog: ProfileName = "default"
    """Catalog profile in platform.yaml."""
    compute: ProfileName = "default"
    """Compute profile in platform.yaml."""
    calendars: dict[str, CalendarSpec] = Field(default_factory=dict)
    """Custom business calendars, by name."""
    datasets: dict[DatasetName, DatasetSpec] = Field(default_factory=dict)
    """Datasets, by name."""
    processes: dict[ProcessName, ProcessSpec] = Field(default_factory=dict)
    """Processes, by name."""
    transforms: tuple[DbtTransform, ...] = ()
    """Projects of other tools, such as dbt."""
    orchestration: Orchestration = Orchestration()
    """Assets, partitions, jobs, schedules, sensors and backfills."""
    governance: Governance = Governance()
    """What every dataset must declare, and how sensitive data is protected."""
    observability: Observability = Observability()
    """What runs report, and which channels to notify."""

    def owner_or_default(self, owner: Owner | None) -> Owner | None:
        """Return the declared owner, or the default owner of the project."""
        return owner or self.governance.default_owner

    def calendar_named(self, name: str) -> Calendar:
        """Return a calendar of the project, or a built-in one."""
        return get_calendar(name, self.calendars)
