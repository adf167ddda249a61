"""What datasets and processes promise: who answers for them, by when, and for how long."""

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.names import Email
from floe.spec.values import Date, Duration, OneOrMany, TimeOfDay, Zone


class Owner(SpecModel):
    """Who answers for something."""

    team: str
    """The team, as people call it."""
    email: Email | None = None
    """Where to write to."""
    steward: Email | None = None
    """Who approves changes to the registration."""


class Escalation(SpecModel):
    """Whom to tell when a promise stays broken."""

    after: Duration
    """How long after the breach."""
    notify: OneOrMany
    """The notification channels of platform.yaml to use."""


class Sla(SpecModel):
    """A promise: what the SLA of a dataset and that of a process have in common."""

    description: str = ""
    """Why the promise matters, for those who are woken up by it."""
    due: TimeOfDay | None = None
    """The time of day by which the version is ready."""
    timezone: Zone | None = None
    """The zone of `due`; by default that of the dataset, else of the project."""
    calendar: str | None = None
    """The calendar of business days on which the promise holds."""
    day_offset: Annotated[int, Field(ge=0, le=366)] = 0
    """How many days after the business date `due` falls; business days of the calendar, if any."""
    warn_before: Duration | None = None
    """How long before the breach to warn."""
    notify: OneOrMany = ()
    """The notification channels of platform.yaml to use."""
    escalate: tuple[Escalation, ...] = ()
    """Whom to tell later, when the promise stays broken."""


class DatasetSla(Sla):
    """A promise: a version for each business date by a time of day, or a maximum age."""

    max_age: Duration | None = None
    """How old the newest version may be at any time."""


class ProcessSla(Sla):
    """A promise: outputs for each business date by a time of day, or a maximum run time."""

    max_duration: Duration | None = None
    """How long a run may take."""


class Retention(SpecModel):
    """How long superseded versions are kept. What is needed by a run or a hold always stays."""

    age: Duration | None = None
    """Versions older than this may go."""
    versions: Annotated[int, Field(ge=1)] | None = None
    """This many of the newest versions stay in any case."""


def _age_alone(value: Any) -> Any:
    return {"age": value} if isinstance(value, str) else value


RetentionOrAge = Annotated[
    Retention, BeforeValidator(_age_alone, json_schema_input_type=str | Retention)
]
"""`90d` is short for `{age: 90d}`."""


class LegalHold(SpecModel):
    """Nothing of the dataset may be removed."""

    reason: str
    """The case or rule that demands it."""
    until: Date | None = None
    """When the hold ends by itself."""
