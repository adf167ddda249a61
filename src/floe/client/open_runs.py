"""Which run of a process is open on this host, so that STARTED and SUCCESS find each other.

A shell job that reports in two calls has nowhere to keep a run id. Two runs of one process at
the same time on one host cannot be told apart this way; they name their run ids.
"""

import uuid
from contextlib import suppress
from pathlib import Path

from floe.client.messages import ENDED


class OpenRuns:
    """Remembers the run of each process that was started here and has not ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "runs"

    def run_for(self, process: str, status: str) -> str:
        """Return the run that a report without a run id is about."""
        known = None if status == "STARTED" else self._recall(process)
        run_id = known or str(uuid.uuid4())
        if status not in ENDED:
            self._remember(process, run_id)
        return run_id

    def forget(self, process: str) -> None:
        """The run of a process has ended."""
        with suppress(OSError):
            self._file(process).unlink(missing_ok=True)

    def _recall(self, process: str) -> str | None:
        try:
            return str(uuid.UUID(self._file(process).read_text(encoding="ascii")))
        except (OSError, ValueError):
            return None

    def _remember(self, process: str, run_id: str) -> None:
        # Where this fails the spool fails too, and says so.
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            beside = self._file(process).with_suffix(f".{uuid.uuid4().hex}")
            beside.write_text(run_id, encoding="ascii")
            beside.replace(self._file(process))

    def _file(self, process: str) -> Path:
        import hashlib

        return self._folder / hashlib.sha256(process.encode()).hexdigest()[:32]
