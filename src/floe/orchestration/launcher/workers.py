"""The processes of runs, on record before they begin: who they are, and how they are ended."""

import json
import os
import signal
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from floe.execution.spark.processes import is_running
from floe.execution.spark.properties import write_private


@dataclass(frozen=True)
class Worker:
    """The process of a run: it leads a session of its own."""

    run_id: str
    pid: int
    start: str
    instance: str
    """Where its Dagster instance is, in Dagster's own writing."""
    kill_at: float | None = None
    """When it has been asked to end and is given up on, by the clock that never goes back."""

    @property
    def alive(self) -> bool:
        return is_running(self.pid, self.start)

    def interrupt(self) -> None:
        """Ask the run to end; what it has started is its own to end."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """End the run and all that it has started."""
        if self.alive:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)


@dataclass(frozen=True)
class Workers:
    """The processes of runs of one Dagster home."""

    folder: Path

    @classmethod
    def of_home(cls, home: Path) -> "Workers":
        return cls(home / "workers")

    def note(self, worker: Worker) -> None:
        """Put a process on record, whole or not at all."""
        write_private(self._file(worker.run_id), json.dumps(asdict(worker)))

    def find(self, run_id: str) -> Worker | None:
        """Return the process of a run, dead or alive; None if none is on record."""
        try:
            return Worker(**json.loads(self._file(run_id).read_text(encoding="utf-8")))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def all(self) -> list[Worker]:
        """Return every process on record."""
        found = [self.find(file.stem) for file in self.folder.glob("*.json")]
        return [worker for worker in found if worker is not None]

    def forget(self, run_id: str) -> None:
        """Take a process off the record."""
        self._file(run_id).unlink(missing_ok=True)

    def end(self) -> None:
        """End every run, at once: for those who have no more time."""
        for worker in self.all():
            worker.kill()
            self.forget(worker.run_id)

    def _file(self, run_id: str) -> Path:
        return self.folder / f"{run_id}.json"
