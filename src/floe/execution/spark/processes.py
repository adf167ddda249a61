"""Processes of this machine, known by their start as well as by their number, which is reused."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
ESTABLISHED = "01"
GRACE_SECONDS = 20.0


def start_of(pid: int) -> str | None:
    """Return a mark of when a process started; None when there is none, or only its remains."""
    if not PROC.joinpath("self", "stat").exists():
        return _start_by_ps(pid)
    try:
        text = (PROC / str(pid) / "stat").read_text()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # After the name, which is in brackets and may hold anything: the state, and 19 on the start.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _start_by_ps(pid: int) -> str | None:
    asked = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False)  # noqa: S603
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def is_running(pid: int, start: str) -> bool:
    """Tell whether this very process still runs."""
    return start_of(pid) == start


def end_process(pid: int, start: str, grace: float = GRACE_SECONDS) -> None:
    """End a process and its group: ask first, then insist. Nobody else's is ever touched."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if not is_running(pid, start):
            return
        _signal_group(pid, number)
        if wait_until(lambda: not is_running(pid, start), grace):
            return


def _signal_group(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        group = os.getpgid(pid)
        if group == os.getpgid(0):
            os.kill(pid, number)
        else:
            os.killpg(group, number)


def wait_until(true: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Wait for something to become true; tell whether it did in time."""
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def count_connections(port: int) -> int | None:
    """Count the clients that are connected to a port; None where the system does not tell."""
    tables = [PROC / "net" / name for name in ("tcp", "tcp6")]
    found = [table.read_text() for table in tables if table.exists()]
    if not found:
        return None
    rows = [line.split() for text in found for line in text.splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)
