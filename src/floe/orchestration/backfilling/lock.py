"""A lock per backfill: two commands at once would run everything twice."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floe.errors import FloeError
from floe.settings import make_private_folder


class BackfillLockedError(FloeError):
    """Another command runs the same backfill."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(
            f"The process {pid} is already running the backfill '{name}'. "
            f"Show its progress with: floe backfill {name} --status; "
            f"stop it with: floe backfill {name} --cancel."
        )


@contextmanager
def backfill_lock(folder: Path, name: str) -> Iterator[None]:
    """Hold the lock of a backfill. The lock of a killed process is released."""
    path = _file(folder, name)
    make_private_folder(path.parent)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackfillLockedError(name, _pid(path)) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def lock_holder(folder: Path, name: str) -> int | None:
    """Return the pid of the process that runs a backfill, or None."""
    try:
        with backfill_lock(folder, name):
            return None
    except BackfillLockedError:
        return _pid(_file(folder, name))


def _file(folder: Path, name: str) -> Path:
    return folder / "backfills" / f"{name}.lock"


def _pid(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return int(text) if text else 0
