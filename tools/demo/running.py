"""Start, use and stop the demo's floe through its commands."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from floe.cli.output import console
from floe.cli.status import shown_live
from floe.errors import FloeError
from floe.orchestration.home import read_web_secret
from floe.services.state import BROKEN, Up, read_up
from floe.settings import ProjectPaths
from tools.demo.signals import uninterrupted

LOOK_SECONDS = 0.2
NEEDED = {"spark", "api", "web"}
COMMAND = (sys.executable, "-m", "floe.cli")


class NotUpError(FloeError):
    """A service did not start."""

    def __init__(self, reason: str, log: Path) -> None:
        super().__init__(f"{reason}\nThe log is {shorten_path(log)}")


class CommandFailedError(FloeError):
    """A floe command failed; its output gives the reason."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"floe {name} failed with exit code {code}; see its output above.")


@dataclass(frozen=True)
class Addresses:
    """The addresses of the services."""

    dagster: str
    api: str
    secret: str = field(repr=False)
    """The secret with which the folder's owner can use Dagster."""


@dataclass(frozen=True)
class Floe:
    """floe's commands in a project."""

    root: Path

    def log(self, service: str) -> Path:
        """Return the log file of a service."""
        return self.root / ".floe" / "logs" / f"{service}.log"

    def is_up(self) -> bool:
        up = read_up(ProjectPaths(self.root))
        return up is not None and up.alive

    def show(self, *command: str) -> None:
        """Print a command and run it."""
        console.print(f"\n$ floe {' '.join(command)}", style="bold", markup=False)
        sys.stdout.flush()
        done = subprocess.run([*COMMAND, *command], cwd=self.root, check=False)
        if done.returncode:
            raise CommandFailedError(command[0], done.returncode)

    @contextmanager
    def up(self) -> Iterator[Addresses]:
        """Start everything, and stop it at the end; leave a floe that was already up."""
        up = read_up(ProjectPaths(self.root))
        if up is not None and up.alive:
            console.print("floe is already up and stays up.")
            yield self._addresses(self._wait(up.pid, self.is_up))
            return
        with uninterrupted():
            process = self._start()
        try:
            yield self._addresses(self._wait(process.pid, lambda: process.poll() is None))
        finally:
            with uninterrupted():
                self._stop(process)

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start `floe up` in its own session, so that Ctrl-C only reaches the demo."""
        log = self.log("up")
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            return subprocess.Popen(
                [*COMMAND, "up"],
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, pid: int, is_running: Callable[[], bool]) -> Up | None:
        """Show the services until all are up or failed; return None if floe ends before."""
        with shown_live() as report:
            while is_running():
                up = read_up(ProjectPaths(self.root))
                if up is not None and up.pid == pid:
                    report(up)
                    if up.settled:
                        return up
                time.sleep(LOOK_SECONDS)
        return None

    def _addresses(self, up: Up | None) -> Addresses:
        if up is None:
            output = self.log("up").read_text(errors="replace").strip()
            raise NotUpError(output, self.log("up"))
        services = {service.name: service for service in up.services}
        if missing := ", ".join(sorted(NEEDED - services.keys())):
            raise NotUpError(f"floe is up without {missing}. Run: floe down", self.log("up"))
        for service in up.services:
            if service.state in BROKEN:
                raise NotUpError(f"{service.name}: {service.message}", service.log)
        secret = read_web_secret(self.root / ".floe" / "dagster")
        return Addresses(services["web"].address or "", services["api"].address or "", secret)

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Stop everything that was started, even if the terminal is gone."""
        process.terminate()
        try:
            console.print("Stopping all services …")
        finally:
            process.wait()
            if read_up(ProjectPaths(self.root)) is not None:
                # The supervisor was killed and could not stop the services.
                subprocess.run([*COMMAND, "down"], cwd=self.root, check=False)
        console.print("All services have stopped.")


def shorten_path(path: Path) -> Path:
    """Return a path relative to the current folder if it is inside it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
