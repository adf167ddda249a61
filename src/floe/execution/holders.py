"""Who holds a lease: a process of a machine, which can be found dead before its lease ends."""

import os
import socket
import uuid
from functools import cache
from pathlib import Path


@cache
def _started(pid: int) -> str:
    return start_time(pid) or "0"


def start_time(pid: int) -> str | None:
    """Return when a process started, in the kernel's ticks; None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    # The name in brackets may hold anything; what follows it is plain.
    return stat.rpartition(")")[2].split()[19]


def new_holder() -> str:
    """Name a holder of this process, unlike any other."""
    pid = os.getpid()
    return f"{socket.gethostname()}/{pid}/{_started(pid)}/{uuid.uuid4().hex[:12]}"


def is_dead(holder: str) -> bool:
    """Tell whether a holder is known to be gone. Of another machine nothing is known."""
    host, _, rest = holder.partition("/")
    pid, _, rest = rest.partition("/")
    started = rest.partition("/")[0]
    if host != socket.gethostname() or not pid.isdigit() or not Path("/proc").is_dir():
        return False
    return start_time(int(pid)) != started


def is_same_process(holder: str, other: str) -> bool:
    """Tell whether two holders are of one process: same host, pid and start time."""
    return holder.split("/")[:3] == other.split("/")[:3]
