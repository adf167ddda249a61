"""Observability: what a project reports about its runs, and whom it tells."""

from pydantic import Field

from floe.spec.base import SpecModel
from floe.spec.values import OneOrMany


class Notify(SpecModel):
    """The notification channels of platform.yaml that hear of events."""

    failure: OneOrMany = ()
    """When a run fails."""
    sla: OneOrMany = ()
    """When a promise is at risk or broken."""
    check: OneOrMany = ()
    """When a check rejects a version."""
    drift: OneOrMany = ()
    """When what is observed differs from what is declared."""


class Observability(SpecModel):
    """What is reported. Where to is said in platform.yaml."""

    traces: bool = True
    """Send spans of runs to the OpenTelemetry collector, where one is configured."""
    column_lineage: bool = True
    """Whether lineage goes down to columns."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Resource attributes of every span, such as the cost centre."""
    notify: Notify = Notify()
    """Whom to tell of what."""
