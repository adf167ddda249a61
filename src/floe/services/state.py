"""The state file of `floe up`: the supervisor, its services and their addresses."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from floe.execution.os_processes import is_running
from floe.execution.spark.server_files import write_private
from floe.settings import ProjectPaths, make_private_file, make_private_folder

State = Literal[
    "waiting",
    "starting",
    "running",
    "done",
    "foreign",
    "unhealthy",
    "faulty",
    "restarting",
    "failed",
    "stopping",
    "stopped",
    "left over",
    "gone",
]
READY: tuple[State, ...] = ("running", "done", "foreign")
BROKEN: tuple[State, ...] = ("failed", "faulty")
"""Failed for good, or running while the project that it serves does not load."""
SETTLED: tuple[State, ...] = (*READY, *BROKEN)


@dataclass(frozen=True)
class ServiceStatus:
    """The state of one service."""

    name: str
    state: State
    since: datetime
    log: Path
    address: str | None = None
    pid: int | None = None
    start: str | None = None
    """Start time: tells the process from a later one with the same pid."""
    restarts: int = 0
    message: str = ""

    @property
    def alive(self) -> bool:
        return self.pid is not None and self.start is not None and is_running(self.pid, self.start)


@dataclass(frozen=True)
class Up:
    """A supervisor and its services."""

    pid: int
    start: str
    since: datetime
    runtime: Path
    """The folder of its sockets; outside the project, because socket paths must be short."""
    notes: tuple[str, ...] = ()
    services: tuple[ServiceStatus, ...] = field(default=())

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)

    @property
    def settled(self) -> bool:
        """Whether every service has started or failed, or waits for a failed one."""
        moving = [service for service in self.services if service.state not in SETTLED]
        failed = any(service.state == "failed" for service in self.services)
        return all(failed and service.state == "waiting" for service in moving)

    @property
    def broken(self) -> bool:
        """Whether a service has failed for good, or serves a project that does not load."""
        return any(service.state in BROKEN for service in self.services)


def state_file(paths: ProjectPaths) -> Path:
    """Return the path of the state file."""
    return paths.state_dir / "up.json"


def write_up(paths: ProjectPaths, up: Up) -> None:
    """Write the state file atomically, readable by its owner only."""
    write_private(state_file(paths), json.dumps(asdict(up), default=str, indent=1))


def read_up(paths: ProjectPaths) -> Up | None:
    """Read the state file; None if it is missing or unreadable."""
    try:
        return _parse_up(json.loads(state_file(paths).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def remove_up(paths: ProjectPaths) -> None:
    """Delete the state file: nothing is up."""
    state_file(paths).unlink(missing_ok=True)


@contextmanager
def lock_project(paths: ProjectPaths) -> Iterator[bool]:
    """Take the lock that allows one `floe up` per project; yield whether it was free.

    The lock is released when its holder is killed. Children do not inherit it.
    """
    make_private_folder(paths.state_dir)
    lock = paths.state_dir / "up.lock"
    make_private_file(lock)
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True


def _parse_up(state: dict[str, Any]) -> Up:
    return Up(
        pid=int(state["pid"]),
        start=str(state["start"]),
        since=datetime.fromisoformat(state["since"]),
        runtime=Path(state["runtime"]),
        notes=tuple(state["notes"]),
        services=tuple(_parse_service(service) for service in state["services"]),
    )


def _parse_service(state: dict[str, Any]) -> ServiceStatus:
    parsed = {"since": datetime.fromisoformat(state["since"]), "log": Path(state["log"])}
    return ServiceStatus(**{**state, **parsed})
