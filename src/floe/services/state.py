"""What is up, as a file tells it: the supervisor, its services, and where they can be reached."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from floe.execution.spark.processes import is_running
from floe.execution.spark.properties import write_private
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
"""Given up, or running without doing its job: the project that it serves does not load."""
SETTLED: tuple[State, ...] = (*READY, *BROKEN)


@dataclass(frozen=True)
class Standing:
    """How a service stands."""

    name: str
    state: State
    since: datetime
    log: Path
    address: str | None = None
    pid: int | None = None
    start: str | None = None
    """Tells its process from a later one that has the same number."""
    restarts: int = 0
    said: str = ""

    @property
    def alive(self) -> bool:
        return self.pid is not None and self.start is not None and is_running(self.pid, self.start)


@dataclass(frozen=True)
class Up:
    """A supervisor and what it keeps running."""

    pid: int
    start: str
    since: datetime
    runtime: Path
    """The folder of its sockets, outside the project: their paths must be short."""
    notes: tuple[str, ...] = ()
    services: tuple[Standing, ...] = field(default=())

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)

    @property
    def settled(self) -> bool:
        """Whether everything has started or given up, or can never start."""
        moving = [one for one in self.services if one.state not in SETTLED]
        failed = any(one.state == "failed" for one in self.services)
        return all(failed and one.state == "waiting" for one in moving)

    @property
    def broken(self) -> bool:
        """Whether a service has failed for good, or serves a project that does not load."""
        return any(one.state in BROKEN for one in self.services)


def state_file(paths: ProjectPaths) -> Path:
    """Return the file that tells what is up."""
    return paths.state_dir / "up.json"


def write_up(paths: ProjectPaths, up: Up) -> None:
    """Write what is up, whole or not at all, for its owner alone."""
    write_private(state_file(paths), json.dumps(asdict(up), default=str, indent=1))


def read_up(paths: ProjectPaths) -> Up | None:
    """Return what is up; None without a file, or with one that cannot be read."""
    try:
        found = json.loads(state_file(paths).read_text(encoding="utf-8"))
        return _up(found)
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def forget_up(paths: ProjectPaths) -> None:
    """Say that nothing is up."""
    state_file(paths).unlink(missing_ok=True)


@contextmanager
def held(paths: ProjectPaths) -> Iterator[bool]:
    """Hold the right to bring a project up; give whether it was free.

    Whoever is killed holds it no longer. Children do not inherit it.
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


def _up(found: dict[str, Any]) -> Up:
    return Up(
        pid=int(found["pid"]),
        start=str(found["start"]),
        since=datetime.fromisoformat(found["since"]),
        runtime=Path(found["runtime"]),
        notes=tuple(found["notes"]),
        services=tuple(_standing(one) for one in found["services"]),
    )


def _standing(found: dict[str, Any]) -> Standing:
    read = {"since": datetime.fromisoformat(found["since"]), "log": Path(found["log"])}
    return Standing(**{**found, **read})
