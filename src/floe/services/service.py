"""What a service is: a command that is to run, and how to tell that it is well."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from floe.execution.site import Site


@dataclass(frozen=True)
class Verdict:
    """What a look at a service has shown."""

    well: bool
    said: str = ""
    address: str | None = None
    """Where it is, if that shows only when it runs."""
    faulty: bool = False
    """It runs, but what it serves does not work; a restart would not help."""


class CannotTellError(Exception):
    """Whoever could say how a service is does not answer: nothing follows from that."""


Probe = Callable[[], Verdict]
PRIVATE, AS_USER = 0o077, -1
"""Files for their owner alone, or as the user who runs floe has it."""


def nothing_to_ask() -> Verdict:
    """A process that runs is well."""
    return Verdict(True)


def nothing_to_do() -> None:
    """Nothing is left behind by a service that has ended."""


@dataclass(frozen=True)
class Service:
    """Something to run. One without a command is somebody else's, and only shown."""

    name: str
    command: tuple[str, ...]
    log: Path
    folder: Path
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The whole environment: it may hold secrets."""
    needs: tuple[str, ...] = ()
    """What must be ready before it starts."""
    address: str | None = None
    probe: Probe = nothing_to_ask
    umask: int = PRIVATE
    """What its files are closed to; -1 for those that write the data of users."""
    once: bool = False
    """It does its work and ends."""
    start_seconds: float = 180.0
    """When it counts as failed, if it is not ready."""
    grace: float = 15.0
    """How long it may take to end before it is killed."""
    clean: Callable[[], None] = nothing_to_do
    """Removes what it may have left when it is gone for good."""


def log_of(site: Site, name: str) -> Path:
    """Return where a service says what it does."""
    return site.state_dir / "logs" / f"{name}.log"


def environ_of(site: Site) -> dict[str, str]:
    """Return the environment that services of a project share."""
    # What is said is to be in the log at once.
    return {**os.environ, "FLOE_PROJECT": str(site.root), "PYTHONUNBUFFERED": "1"}
