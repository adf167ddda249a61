"""OS processes: when they started, whether they still run, how to stop them.

A process is identified by its pid and its start time, because pids are reused. A lease holder's
name contains both, so a dead holder is detected before its lease expires.
"""

import os
import signal
import socket
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

PROC = Path("/proc")
ESTABLISHED = "01"
GRACE_SECONDS = 20.0


def start_of(pid: int) -> str | None:
    """Return a marker of a process's start; None if it does not run or is a zombie."""
    if not PROC.joinpath("self", "stat").exists():
        return _start_by_ps(pid)
    try:
        text = (PROC / str(pid) / "stat").read_text()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return None
    # The name in brackets may contain anything. The state follows it; the start time is field 19.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else f"{boot}/{fields[19]}"


def _start_by_ps(pid: int) -> str | None:
    command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    state, _, started = answer.stdout.strip().partition(" ")
    return None if not started or state.startswith("Z") else started.strip()


def is_running(pid: int, start: str) -> bool:
    """Tell whether the process with this pid and start still runs."""
    return start_of(pid) == start


def end_process(pid: int, start: str, grace: float = GRACE_SECONDS) -> None:
    """Stop a process and its group: SIGTERM, then SIGKILL. A reused pid is left alone."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        if not is_running(pid, start):
            return
        _signal_group(pid, signal_number)
        if wait_until(lambda: not is_running(pid, start), grace):
            return


def _signal_group(pid: int, signal_number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        group = os.getpgid(pid)
        if group == os.getpgid(0):
            os.kill(pid, signal_number)
        else:
            os.killpg(group, signal_number)


def wait_until(condition: Callable[[], bool], seconds: float, pause: float = 0.05) -> bool:
    """Wait for a condition; tell whether it came condition in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
    return True


def count_connections(port: int) -> int | None:
    """Count the clients connected to a port; None if the system cannot tell."""
    tables = [PROC / "net" / name for name in ("tcp", "tcp6")]
    texts = [table.read_text() for table in tables if table.exists()]
    if not texts:
        return None
    rows = [line.split() for text in texts for line in text.splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == ESTABLISHED for row in rows)


@cache
def _started(pid: int) -> str:
    return start_time(pid) or "0"


def start_time(pid: int) -> str | None:
    """Return a process's start time in kernel ticks; None if it does not exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in brackets may contain anything; the fields after it are plain.
    return stat.rpartition(")")[2].split()[19]


def new_holder() -> str:
    """Return a unique holder name for this process."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:12]}"


def is_dead(holder: str) -> bool:
    """Tell whether a holder's process is gone; False for one on another machine."""
    host, _, rest = holder.partition("/")
    pid, _, rest = rest.partition("/")
    started = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit() or not Path("/proc").is_dir():
        return False
    return start_time(int(pid)) != started


def is_same_process(holder: str, other: str) -> bool:
    """Tell whether two holders belong to the same process (host, pid, start time)."""
    return holder.split("/")[:3] == other.split("/")[:3]
