"""Who makes a backfill, holds it: two at once would make everything twice."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from floe.errors import FloeError
from floe.settings import make_private_folder


class HeldError(FloeError):
    """Another command makes the same backfill."""

    def __init__(self, name: str, pid: int) -> None:
        super().__init__(
            f"The backfill '{name}' is being made by the process {pid}. "
            f"Look at it with: floe backfill {name} --status; "
            f"stop it with: floe backfill {name} --cancel."
        )


@contextmanager
def held(folder: Path, name: str) -> Iterator[None]:
    """Hold a backfill. Who is killed holds it no longer."""
    path = _file(folder, name)
    make_private_folder(path.parent)
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(name, _pid(path)) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def holder_of(folder: Path, name: str) -> int | None:
    """Return the process that makes a backfill; None, when nobody does."""
    try:
        with held(folder, name):
            return None
    except HeldError:
        return _pid(_file(folder, name))


def _file(folder: Path, name: str) -> Path:
    return folder / "backfills" / f"{name}.lock"


def _pid(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    return int(text) if text else 0
