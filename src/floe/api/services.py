"""What routes stand on: the catalog, the event door, the gate and the counters."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from starlette.requests import Request

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from floe.api.bodies import Budget
    from floe.api.gate import Gate
    from floe.api.hosts import Hosts
    from floe.api.metrics import Metrics
    from floe.api.watch import ChangeWatch
    from floe.api.watched_door import WatchedDoor
    from floe.catalog.principals import Identity
    from floe.catalog.sessions import Sessions


@dataclass(frozen=True)
class Services:
    """All that an app has one of."""

    sessions: "Sessions"
    door: "WatchedDoor"
    gate: "Gate"
    metrics: "Metrics"
    watch: "ChangeWatch"
    budget: "Budget"
    threads: "Executor"
    hosts: "Hosts"
    lake: str
    # How long events are kept: what is older fills history and triggers nothing.
    retention: timedelta


def services_of(request: Request) -> Services:
    """Return the services of the app that a request came to."""
    services: Services = request.app.state.services
    return services


def caller_of(request: Request) -> "Identity":
    """Return who sent a request that the gate has let in."""
    identity: Identity = request.state.identity
    return identity
