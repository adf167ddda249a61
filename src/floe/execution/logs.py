"""The log of a run: a file that stays, and lines for whoever looks on."""

import threading
from collections.abc import Callable
from pathlib import Path

from floe import clock
from floe.settings import make_private_folder

Listener = Callable[[str], None]


def run_log_path(state_dir: Path, run_id: str) -> Path:
    """Return where the log of a run is kept."""
    return state_dir / "logs" / "runs" / f"{run_id}.log"


class RunLog:
    """Takes lines from any thread; each is written at once, so that a killed run has its log."""

    def __init__(self, path: Path, listener: Listener | None = None) -> None:
        make_private_folder(path.parent)
        self.path = path
        self._listener = listener
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def say(self, line: str) -> None:
        """Write a line with its time."""
        with self._lock:
            self._file.write(f"{clock.now().isoformat(timespec='milliseconds')} {line}\n")
        if self._listener is not None:
            self._listener(line)

    def close(self) -> None:
        """Close the file."""
        self._file.close()
