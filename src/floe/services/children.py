"""A process that floe keeps: a session of its own, born behind a gate, ended with all it started.

The gate opens when the process is on record: who is killed in between leaves nobody behind that
the next one cannot find.
"""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import IO

from floe import clock
from floe.execution.spark.processes import PROC, start_of
from floe.services.service import Service
from floe.settings import make_private_folder

# The shell becomes the command: number and start stay. A gate that closes unopened ends it.
GATE = 'read -r open && exec "$@" </dev/null'
LOG_LIMIT = 10_000_000
"""How long a log may be before the next start begins a new one."""


class Child:
    """A process of a service."""

    def __init__(self, service: Service) -> None:
        with _open_log(service.log) as log:
            self._process = subprocess.Popen(  # noqa: S603
                ["/bin/sh", "-c", GATE, service.name, *service.command],
                cwd=service.folder,
                env=dict(service.environ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                umask=service.umask,
            )
        self.pid = self._process.pid
        self.start = start_of(self.pid) or ""

    def release(self) -> None:
        """Open the gate."""
        gate = self._process.stdin
        # One that has ended meanwhile is found by its exit.
        with suppress(BrokenPipeError):
            if gate is not None:
                gate.write(b"open\n")
                gate.close()

    def exit_code(self) -> int | None:
        """Return what it ended with. It is left unburied, so that nobody gets its number."""
        if self._process.returncode is not None:
            return self._process.returncode
        found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else -found.si_status

    def ask(self) -> None:
        """Ask it to end. What it started is its own to end."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGTERM)

    def bury(self) -> None:
        """End it, and whatever it has started and left."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def members(session: int) -> list[int]:
    """Return the processes of a session, its leader last. Empty where the system does not tell."""
    found = []
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            # State, parent, group, session.
            if fields[0] not in "ZX" and int(fields[3]) == session:
                found.append(int(folder.name))
    return sorted(found, reverse=True)


def _open_log(path: Path) -> IO[bytes]:
    make_private_folder(path.parent)
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    file.write(f"--- started by floe up at {clock.now():%Y-%m-%d %H:%M:%S}Z\n".encode())
    file.flush()
    return file
