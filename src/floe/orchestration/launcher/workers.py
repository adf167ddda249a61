"""The processes of runs: their records on disk, and requests to the warm process.

Nothing here imports Dagster, so that stopping runs is quick.
"""

import json
import os
import signal
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from floe.execution.os_processes import is_running
from floe.execution.spark.server_files import write_private

MAX_REQUEST_BYTES = 4_000_000
RESPONSE_SECONDS = 120.0
"""Long, because a project that has changed is loaded again before the response."""


@dataclass(frozen=True)
class Worker:
    """The process of a run; it leads a session of its own."""

    run_id: str
    pid: int
    start: str
    instance: str
    """The reference to its Dagster instance, serialized by Dagster."""
    kill_at: float | None = None
    """When to kill it after it was asked to stop, by the monotonic clock."""

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)

    def interrupt(self) -> None:
        """Ask the run to stop; it stops what it has started itself."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """Kill the run and everything that it has started."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Workers:
    """The recorded run processes of one Dagster home."""

    folder: Path

    @classmethod
    def of_home(cls, home: Path) -> "Workers":
        return cls(home / "workers")

    def record(self, worker: Worker) -> None:
        """Write the record of a process, atomically."""
        write_private(self._file(worker.run_id), json.dumps(asdict(worker)))

    def find(self, run_id: str) -> Worker | None:
        """Return the process of a run, dead or alive, or None if it has no record."""
        try:
            return Worker(**json.loads(self._file(run_id).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def all(self) -> list[Worker]:
        """Return every recorded process."""
        workers = [self.find(file.stem) for file in self.folder.glob("*.json")]
        return [worker for worker in workers if worker is not None]

    def remove(self, run_id: str) -> None:
        """Delete the record of a process."""
        self._file(run_id).unlink(missing_ok=True)

    def kill_all(self) -> None:
        """Kill every run at once, without a grace period."""
        for worker in self.all():
            worker.kill()
            self.remove(worker.run_id)

    def _file(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"


class NotReachedError(Exception):
    """The request could not be sent, so nothing has happened."""


class NoResponseError(Exception):
    """The request was sent, and no response came."""


def listen(path: Path) -> socket.socket:
    """Listen on a socket file that only its owner can open."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def send_request(
    path: str | None, request: dict[str, Any], seconds: float = RESPONSE_SECONDS
) -> Any:
    """Send a request as one line of JSON; return the response."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(seconds)
        try:
            connection.connect(path or "")
        except OSError as error:
            raise NotReachedError(str(error)) from error
        try:
            connection.sendall(json.dumps(request).encode() + b"\n")
            return json.loads(receive_line(connection))
        except (OSError, ValueError) as error:
            raise NoResponseError(str(error) or type(error).__name__) from error


def receive_line(connection: socket.socket) -> bytes:
    """Read up to the end of a line."""
    content = b""
    while not content.endswith(b"\n") and len(content) < MAX_REQUEST_BYTES:
        part = connection.recv(65536)
        if not part:
            break
        content += part
    return content
