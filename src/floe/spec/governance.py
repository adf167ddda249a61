"""Governance: what every dataset must declare, and how sensitive data is treated."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from floe.spec.base import SpecModel
from floe.spec.names import Email
from floe.spec.values import Date, Duration, OneOrMany, TimeOfDay, Zone


class Owner(SpecModel):
    """Who is responsible for a dataset or process."""

    team: str
    """Name of the team."""
    email: Email | None = None
    """Contact address."""
    steward: Email | None = None
    """Address of the steward who approves changes to the registration."""


class Escalation(SpecModel):
    """Whom to notify if an SLA remains breached."""

    after: Duration
    """Time after the breach."""
    notify: OneOrMany
    """Notification channels in platform.yaml."""


class Sla(SpecModel):
    """The keys that the SLAs of datasets and processes have in common."""

    description: str = ""
    """Why the SLA matters, for whoever is on call."""
    due: TimeOfDay | None = None
    """Time of day by which the version must be ready."""
    timezone: Zone | None = None
    """Time zone of `due`; by default that of the dataset, else of the project."""
    calendar: str | None = None
    """Calendar of the business days on which the SLA applies."""
    day_offset: Annotated[int, Field(ge=0, le=366)] = 0
    """Days between the business date and `due`; business days if there is a calendar."""
    warn_before: Duration | None = None
    """How long before a breach to warn."""
    notify: OneOrMany = ()
    """Notification channels in platform.yaml."""
    escalate: tuple[Escalation, ...] = ()
    """Whom to notify later if the SLA remains breached."""


class DatasetSla(Sla):
    """SLA of a dataset: when each version must be ready, or a maximum age."""

    max_age: Duration | None = None
    """Maximum age of the newest version."""


class ProcessSla(Sla):
    """SLA of a process: outputs by a time of day, or a maximum run time."""

    max_duration: Duration | None = None
    """Maximum duration of a run."""


class Retention(SpecModel):
    """How long to keep superseded versions.

    Versions needed by a run or a legal hold are always kept.
    """

    age: Duration | None = None
    """Versions older than this may be removed."""
    versions: Annotated[int, Field(ge=1)] | None = None
    """Number of newest versions to keep regardless of age."""


def _expand_age(value: Any) -> Any:
    return {"age": value} if isinstance(value, str) else value


RetentionOrAge = Annotated[
    Retention, BeforeValidator(_expand_age, json_schema_input_type=str | Retention)
]
"""`90d` is short for `{age: 90d}`."""


class LegalHold(SpecModel):
    """A legal hold: none of the dataset's data may be removed."""

    reason: str
    """The case or rule that requires it."""
    until: Date | None = None
    """When the hold expires automatically."""


Requirement = Literal[
    "description", "owner", "category", "tags", "classification", "schema", "sla", "checks",
    "retention",
]  # fmt: skip


class Policy(SpecModel):
    """How columns of certain classifications are protected."""

    action: Literal["mask", "hash", "drop", "restrict"]
    """Mask, hash or drop the values for readers without access, or restrict the dataset."""
    classifications: tuple[str, ...] = ()
    """The classifications it applies to."""
    roles: tuple[str, ...] = ()
    """Roles that may see the values."""
    description: str = ""
    """Why the policy exists."""


class Governance(SpecModel):
    """The rules that the project's datasets follow."""

    classifications: tuple[str, ...] = ("public", "internal", "confidential", "restricted")
    """Sensitivity levels, from least to most sensitive."""
    policies: dict[str, Policy] = Field(default_factory=dict)
    """Policies for sensitive columns, by name."""
    require: tuple[Requirement, ...] = ()
    """What every dataset must declare; validation reports a dataset that does not."""
    approval: bool = False
    """Whether a steward approves each new dataset before it becomes active."""
    default_owner: Owner | None = None
    """Owner of datasets and processes that do not declare one."""
    default_retention: RetentionOrAge | None = None
    """How long to keep versions of datasets that do not declare a retention."""
