"""The root of floe.yaml."""

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.calendars import Calendar, CalendarSpec, get_calendar
from floe.spec.datasets import DatasetSpec
from floe.spec.governance import Governance
from floe.spec.names import DatasetName, ProcessName, ProfileName, ProjectName
from floe.spec.observability import Observability
from floe.spec.orchestration import Orchestration
from floe.spec.processes import ProcessSpec
from floe.spec.promises import Owner
from floe.spec.transforms import DbtTransform
from floe.spec.values import Zone

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
"""The sections of named things. Each may be spread over files by include."""


class ProjectSpec(SpecModel):
    """A project: its datasets, its processes, and how they are run and watched."""

    name: ProjectName
    """The name of the project; process keys begin with it."""
    version: str = ""
    """The version of the project, for people."""
    description: str = ""
    """What the project is about."""
    timezone: Zone = "UTC"
    """The zone of business dates, schedules and promises that name none."""
    calendar: str | None = None
    """The calendar of promises and mappings that name none."""
    storage: ProfileName = "default"
    """The storage profile of platform.yaml."""
    catalog: ProfileName = "default"
    """The catalog profile of platform.yaml."""
    compute: ProfileName = "default"
    """The compute profile of platform.yaml."""
    calendars: dict[str, CalendarSpec] = Field(default_factory=dict)
    """Business calendars of your own, by name."""
    datasets: dict[DatasetName, DatasetSpec] = Field(default_factory=dict)
    """Datasets, by name."""
    processes: dict[ProcessName, ProcessSpec] = Field(default_factory=dict)
    """Processes, by name."""
    transforms: tuple[DbtTransform, ...] = ()
    """Projects of other tools that take part."""
    orchestration: Orchestration = Orchestration()
    """What is discovered, partitioned, scheduled and watched."""
    governance: Governance = Governance()
    """What every dataset must declare, and how sensitive data is treated."""
    observability: Observability = Observability()
    """What runs report, and whom they tell."""

    def owner_or_default(self, owner: Owner | None) -> Owner | None:
        """Return the declared owner of a dataset or process, or the default of the project."""
        return owner or self.governance.default_owner

    def calendar_named(self, name: str) -> Calendar:
        """Return a calendar of the project, or a built-in one."""
        return get_calendar(name, self.calendars)
