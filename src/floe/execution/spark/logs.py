"""Reading the logs of a server: the lines that tell what went wrong, and the last ones."""

import os
import re
import time
from collections.abc import Generator, Iterable
from pathlib import Path

TELLING = re.compile(r"Exception|Error|ERROR|FATAL|Invalid|[Cc]annot|[Cc]ould not|[Nn]ot enough")
NOISE = re.compile(r"^\s+at |^WARNING: |^\s*\.\.\. \d+ more")
MOST = 5
TAIL_BYTES = 256 * 1024


def telling_lines(lines: Iterable[str], most: int = MOST) -> list[str]:
    """Return the last lines that say what went wrong, else the last of all."""
    said = [line.strip() for line in lines if line.strip() and not NOISE.search(line)]
    telling = [line for line in said if TELLING.search(line)]
    return list(dict.fromkeys(telling or said))[-most:]


def last_lines(log: Path, count: int, *, since: int = 0) -> list[str]:
    """Return the end of a log, without reading all of it or anything before a place in it."""
    if not log.exists():
        return []
    with log.open("rb") as file:
        file.seek(max(since, log.stat().st_size - TAIL_BYTES))
        lines = file.read().decode(errors="replace").splitlines()
    return lines[-count:] if count else []


def follow_lines(log: Path, pause: float = 0.3) -> Generator[str, None, None]:
    """Yield what is added to a log from now on, over restarts and roll-overs, until stopped."""
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
