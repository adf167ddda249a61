"""The files of a project's Spark server: paths, state, lock and logs."""

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from pathlib import Path

from floe.execution.os_processes import is_running
from floe.execution.site import Site
from floe.settings import make_private_file, make_private_folder
from floe.spec.platform import Compute


@dataclass(frozen=True)
class ServerFiles:
    """The files of the server of a project and compute profile.

    Files of the project's own profile have short names; those of others contain the profile's name.
    """

    site: Site
    profile: str | None = None

    @property
    def compute(self) -> Compute:
        return self.site.compute(self.profile)

    @property
    def folder(self) -> Path:
        own = self.site.state_dir / "spark"
        return own if self._is_own else own / f"{self.profile}"

    @property
    def log(self) -> Path:
        name = "spark.log" if self._is_own else f"spark-{self.profile}.log"
        return self.site.state_dir / "logs" / name

    @property
    def output(self) -> Path:
        """The JVM's output outside of its log, such as why it exited."""
        return self.log.with_suffix(".out")

    @property
    def work(self) -> Path:
        """Spark's temporary files. A killed JVM leaves them behind."""
        return self.folder / "work"

    @property
    def state(self) -> Path:
        return self.folder / "server.json"

    @property
    def pid(self) -> Path:
        """The JVM's process id, written by the starting shell; exists only during a start."""
        return self.folder / "server.pid"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def properties(self) -> Path:
        """The settings including secrets; exists only while a JVM starts."""
        return self.folder / "server.properties"

    @property
    def _is_own(self) -> bool:
        return self.profile in (None, self.site.spec.compute)


@dataclass(frozen=True)
class Running:
    """A server as recorded in its state file."""

    pid: int
    start: str
    port: int
    token: str = field(repr=False)
    fingerprint: str
    master: str
    started_at: datetime
    ready: bool
    log_from: int = 0
    """Length of the log at the start; earlier lines belong to earlier servers."""

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)


def read_state(files: ServerFiles) -> Running | None:
    """Return the recorded server; None if the state file is missing or invalid."""
    known = {known_field.name for known_field in fields(Running)}
    try:
        content = json.loads(files.state.read_text())
        content["started_at"] = datetime.fromisoformat(content["started_at"])
        # Another version of floe may have stored further fields.
        return Running(**{name: value for name, value in content.items() if name in known})
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def write_state(files: ServerFiles, running: Running) -> None:
    """Write the state file atomically."""
    content = {**asdict(running), "started_at": running.started_at.isoformat()}
    write_private(files.state, json.dumps(content, indent=2) + "\n")


def forget_server(files: ServerFiles) -> None:
    """Remove the files that are needed only while a server starts or runs."""
    for file in (files.state, files.properties, files.pid):
        file.unlink(missing_ok=True)
    shutil.rmtree(files.work, ignore_errors=True)


@contextmanager
def locked(files: ServerFiles) -> Iterator[None]:
    """Hold the lock for starting or stopping a server; released if the process dies."""
    make_private_folder(files.folder)
    make_private_file(files.lock)
    with files.lock.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


ERROR_WORDS = re.compile(
    r"Exception|Error|ERROR|FATAL|Invalid|[Cc]annot|[Cc]ould not|[Nn]ot enough"
)
NOISE = re.compile(r"^\s+at |^WARNING: |^\s*\.\.\. \d+ more")
MAX_LINES = 5
TAIL_BYTES = 256 * 1024


def error_lines(lines: Iterable[str], most: int = MAX_LINES) -> list[str]:
    """Return the last lines that mention an error, else the last lines."""
    relevant = [line.strip() for line in lines if line.strip() and not NOISE.search(line)]
    errors = [line for line in relevant if ERROR_WORDS.search(line)]
    return list(dict.fromkeys(errors or relevant))[-most:]


def last_lines(log: Path, count: int, *, since: int = 0) -> list[str]:
    """Return the last lines of a log, without reading all of it or before an offset."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-count:] if count else []


def follow_lines(log: Path, pause: float = 0.3) -> Generator[str, None, None]:
    """Yield lines added to a log from now on, across restarts and rotations."""
    file = log.open(errors="replace")
    file.seek(0, 2)
    try:
        while True:
            if line := file.readline():
                yield line.rstrip("\n")
            elif log.exists() and log.stat().st_ino != _inode(file.fileno()):
                file.close()
                file = log.open(errors="replace")
            else:
                time.sleep(pause)
    finally:
        file.close()


def _inode(descriptor: int) -> int:
    return os.fstat(descriptor).st_ino


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner at any time."""
    make_private_folder(path.parent)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
