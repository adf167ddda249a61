"""Observability: what a project reports about its runs, and whom it tells."""

from typing import Literal

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
    """Whether runs leave spans."""
    metrics: bool = True
    """Whether runs leave metrics."""
    lineage: bool = True
    """Whether runs leave lineage events."""
    column_lineage: bool = True
    """Whether lineage goes down to columns."""
    attributes: dict[str, str] = Field(default_factory=dict)
    """Attributes put on every span and event, such as the cost centre."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """How much runs log."""
    notify: Notify = Notify()
    """Whom to tell of what."""
