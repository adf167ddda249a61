"""What is remembered of a running server, and where. Only the owner can read it."""

import fcntl
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime

from floe.execution.spark.place import ServerPlace
from floe.execution.spark.processes import is_running
from floe.execution.spark.properties import write_private
from floe.settings import make_private_file, make_private_folder


@dataclass(frozen=True)
class Running:
    """A server as its state file has it."""

    pid: int
    start: str
    port: int
    token: str = field(repr=False)
    fingerprint: str
    master: str
    started_at: datetime
    ready: bool
    log_from: int = 0
    """How long the log was before it, which says why others ended."""

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)


def read_state(place: ServerPlace) -> Running | None:
    """Return what the state file says; None without one, or with one that cannot be read."""
    known = {one.name for one in fields(Running)}
    try:
        found = json.loads(place.state.read_text())
        found["started_at"] = datetime.fromisoformat(found["started_at"])
        # Another version of floe may have noted more.
        return Running(**{name: value for name, value in found.items() if name in known})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_state(place: ServerPlace, running: Running) -> None:
    """Write the state file, whole or not at all."""
    found = {**asdict(running), "started_at": running.started_at.isoformat()}
    write_private(place.state, json.dumps(found, indent=2) + "\n")


def forget_server(place: ServerPlace) -> None:
    """Remove what is only of use while a server runs or starts."""
    for file in (place.state, place.properties, place.pid):
        file.unlink(missing_ok=True)
    shutil.rmtree(place.work, ignore_errors=True)


@contextmanager
def locked(place: ServerPlace) -> Iterator[None]:
    """Be the only one who starts or stops this server. The lock goes with its process."""
    make_private_folder(place.folder)
    make_private_file(place.lock)
    with place.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
