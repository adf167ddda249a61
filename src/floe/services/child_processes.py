"""Start and stop the processes of services; clean up after a killed supervisor.

A child gets its own session and waits at a gate until its pid is recorded. If the supervisor is
killed before that, the gate closes and the child exits, so no unrecorded process keeps running.
"""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO

from floe import clock
from floe.errors import FloeError
from floe.execution.os_processes import PROC, start_of, wait_until
from floe.execution.site import Site
from floe.orchestration.home import home_of
from floe.orchestration.launcher.workers import Workers
from floe.services.service import Service
from floe.services.spark_service import end_spark
from floe.services.state import ServiceStatus, Up, remove_up
from floe.settings import make_private_folder

# The shell execs the command, so pid and start time stay the same. It exits if stdin closes.
GATE = 'read -r open && exec "$@" </dev/null'
LOG_LIMIT = 10_000_000
"""Bytes of log after which the next start begins a new file."""


class Child:
    """The running process of a service."""

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
        """Open the gate: let the command start."""
        gate = self._process.stdin
        # If the child has already ended, its exit code says so.
        with suppress(BrokenPipeError):
            if gate is not None:
                gate.write(b"open\n")
                gate.close()

    def exit_code(self) -> int | None:
        """Return the exit code, or None while it runs. Does not reap: the pid stays taken."""
        if self._process.returncode is not None:
            return self._process.returncode
        result = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if result is None:
            return None
        return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status

    def terminate(self) -> None:
        """Send SIGTERM. The process stops its own children."""
        if self.exit_code() is None:
            os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and all processes of its group, and reap it."""
        if self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        self._process.wait()


def members(session: int) -> list[int]:
    """Return the pids of a session, highest first. Empty where there is no /proc."""
    pids = []
    for folder in PROC.glob("[0-9]*"):
        with suppress(OSError):
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            # Fields: state, parent, group, session.
            if fields[0] not in "ZX" and int(fields[3]) == session:
                pids.append(int(folder.name))
    return sorted(pids, reverse=True)


def _open_log(path: Path) -> IO[bytes]:
    make_private_folder(path.parent)
    if path.exists() and path.stat().st_size > LOG_LIMIT:
        path.replace(path.with_name(f"{path.name}.1"))
    file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab")
    file.write(f"--- started by floe up at {clock.now():%Y-%m-%d %H:%M:%S}Z\n".encode())
    file.flush()
    return file


class NotStoppedError(FloeError):
    """Services are still running after they were stopped."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(f"Still running: {', '.join(names)}. See .floe/logs, and kill them.")


GRACE_SECONDS = 40.0


def refresh_states(up: Up) -> Up:
    """If the supervisor is dead, set the services' states from their processes."""
    if up.alive:
        return up
    services = tuple(
        service
        if service.state in ("foreign", "done", "failed", "stopped")
        else replace(service, state="left over" if leftover_pids(service) else "gone")
        for service in up.services
    )
    return replace(up, services=services)


def leftover_pids(service: ServiceStatus) -> list[int]:
    """Return the pids of a service: its process and others of its session."""
    if service.pid is None:
        return []
    own = [service.pid] if service.alive else []
    # A pid is not reused while a session has it: if it was reused, the session was empty.
    is_reused = start_of(service.pid) not in (None, service.start)
    others = [] if is_reused else [pid for pid in members(service.pid) if pid != service.pid]
    return [*others, *own]


def stop_leftovers(site: Site, up: Up) -> None:
    """Stop what a killed supervisor left, in reverse order of start."""
    for service in reversed(up.services):
        _stop(service)
    # Runs have their own sessions.
    Workers.of_home(home_of(site)).kill_all()
    if any(service.name == "spark" for service in up.services):
        end_spark(site)
    running = [service.name for service in up.services if leftover_pids(service)]
    if running:
        raise NotStoppedError(running)
    shutil.rmtree(up.runtime, ignore_errors=True)
    remove_up(site.paths)


def _stop(service: ServiceStatus) -> None:
    if service.alive and service.pid is not None:
        os.kill(service.pid, signal.SIGTERM)
        wait_until(lambda: not service.alive, GRACE_SECONDS)
    for pid in leftover_pids(service):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not leftover_pids(service), GRACE_SECONDS)
