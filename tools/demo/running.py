"""The demo's floe: brought up, asked, and stopped, as a user does it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from floe.cli.output import console
from floe.cli.service_views import shown_live
from floe.errors import FloeError
from floe.orchestration.home import read_web_secret
from floe.services.state import BROKEN, Up, read_up
from floe.settings import ProjectPaths
from tools.demo.signals import uninterrupted

LOOK_SECONDS = 0.2
NEEDED = {"spark", "api", "web"}
COMMAND = (sys.executable, "-m", "floe.cli")


class NotUpError(FloeError):
    """Something did not come up."""

    def __init__(self, said: str, log: Path) -> None:
        super().__init__(f"{said}\nThe log is {shown(log)}")


class CommandFailedError(FloeError):
    """A command of floe failed, and has said why."""

    def __init__(self, name: str, code: int) -> None:
        super().__init__(f"floe {name} ended with code {code}; see its words above.")


@dataclass(frozen=True)
class Stand:
    """Where the services are."""

    dagster: str
    api: str
    secret: str = field(repr=False)
    """By which the folder's owner reaches Dagster."""


@dataclass(frozen=True)
class Floe:
    """The commands of floe, in a project."""

    root: Path

    def log(self, service: str) -> Path:
        """Return where a service says what it does."""
        return self.root / ".floe" / "logs" / f"{service}.log"

    def is_up(self) -> bool:
        found = read_up(ProjectPaths(self.root))
        return found is not None and found.alive

    def show(self, *command: str) -> None:
        """Show a command and what it says."""
        console.print(f"\n$ floe {' '.join(command)}", style="bold", markup=False)
        sys.stdout.flush()
        done = subprocess.run([*COMMAND, *command], cwd=self.root, check=False)
        if done.returncode:
            raise CommandFailedError(command[0], done.returncode)

    @contextmanager
    def up(self) -> Iterator[Stand]:
        """Have everything up. What was up before stays up after."""
        found = read_up(ProjectPaths(self.root))
        if found is not None and found.alive:
            console.print("floe is up already, and stays up.")
            yield self._stand(self._wait(found.pid, self.is_up))
            return
        with uninterrupted():
            process = self._start()
        try:
            yield self._stand(self._wait(process.pid, lambda: process.poll() is None))
        finally:
            with uninterrupted():
                self._stop(process)

    def _start(self) -> "subprocess.Popen[bytes]":
        """Start `floe up` in a session of its own: Ctrl-C is for the demo alone."""
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

    def _wait(self, pid: int, goes_on: Callable[[], bool]) -> Up | None:
        """Show how it comes up, until it is; None if it has ended before."""
        with shown_live() as report:
            while goes_on():
                found = read_up(ProjectPaths(self.root))
                if found is not None and found.pid == pid:
                    report(found)
                    if found.settled:
                        return found
                time.sleep(LOOK_SECONDS)
        return None

    def _stand(self, found: Up | None) -> Stand:
        if found is None:
            said = self.log("up").read_text(errors="replace").strip()
            raise NotUpError(said, self.log("up"))
        there = {one.name: one for one in found.services}
        if missing := ", ".join(sorted(NEEDED - there.keys())):
            raise NotUpError(f"floe is up without {missing}. Run: floe down", self.log("up"))
        for service in found.services:
            if service.state in BROKEN:
                raise NotUpError(f"{service.name}: {service.said}", service.log)
        secret = read_web_secret(self.root / ".floe" / "dagster")
        return Stand(there["web"].address or "", there["api"].address or "", secret)

    def _stop(self, process: "subprocess.Popen[bytes]") -> None:
        """Stop everything that was started, though nobody may listen any more."""
        process.terminate()
        try:
            console.print("Stopping what was started …")
        finally:
            process.wait()
            if read_up(ProjectPaths(self.root)) is not None:
                # It was killed, and could not stop the others.
                subprocess.run([*COMMAND, "down"], cwd=self.root, check=False)
        console.print("Everything has stopped.")


def shown(path: Path) -> Path:
    """Return a path as it is shown: from here, where that is shorter."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
