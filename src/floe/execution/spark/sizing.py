"""How much of a machine the embedded Spark takes, where the platform does not say."""

import os
from contextlib import suppress
from pathlib import Path

GIB = 1024**3
LEAST, MOST = GIB, 8 * GIB
# A container's share of the machine: today's control groups first, then those of old.
MEMORY_LIMITS = ("memory.max", "memory/memory.limit_in_bytes")
CPU_LIMIT = "cpu.max"
OLD_CPU_LIMIT = ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")
CGROUPS = Path("/sys/fs/cgroup")


def default_cores(cgroups: Path = CGROUPS) -> int:
    """Return how many cores this process may use, whatever the machine has."""
    allowed = _affinity()
    limit = _cpu_limit(cgroups)
    return allowed if limit is None else max(1, min(allowed, int(limit)))


def default_memory(cgroups: Path = CGROUPS) -> str:
    """Return a third of the memory that is there, 1g at least and 8g at most."""
    return memory_of(available_memory(cgroups))


def memory_of(available: int) -> str:
    """Return the share of so many bytes, as Java wants it written."""
    return f"{min(MOST, max(LEAST, available // 3)) // 1024**2}m"


def available_memory(cgroups: Path = CGROUPS) -> int:
    """Return the bytes of the machine, or of the container when that is smaller."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [number for name in MEMORY_LIMITS if (number := _number(cgroups / name))]
    return min([machine, *limits])


def _affinity() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _cpu_limit(cgroups: Path) -> float | None:
    quota, period = None, None
    with suppress(OSError, ValueError):
        quota, period = map(int, (cgroups / CPU_LIMIT).read_text().split())
    if quota is None:
        quota, period = (_number(cgroups / name) for name in OLD_CPU_LIMIT)
    return quota / period if quota and period and quota > 0 else None


def _number(path: Path) -> int | None:
    """Read a limit; None where there is none, which is written in several ways."""
    with suppress(OSError, ValueError):
        return int(path.read_text())
    return None
