"""Points at which a test can kill a process, as a power cut would.

A publish must survive the death of floe, or of Spark, between any two of its steps. FLOE_FAULT is
`point` or `point:n` (the n-th pass); FLOE_FAULT_PID is the process to kill, by default this one.
If FLOE_FAULT is not set, a point does nothing.
"""

import os
import signal

POINT, VICTIM = "FLOE_FAULT", "FLOE_FAULT_PID"
POINTS = ("reserved", "written", "announced", "published", "ready")
"""All points of a publish, in order."""
_passes: dict[str, int] = {}


def point(name: str) -> None:
    """Kill the process if FLOE_FAULT names this point and pass."""
    wanted = os.environ.get(POINT)
    if wanted is None:
        return
    at, _, passes = wanted.partition(":")
    if at != name:
        return
    _passes[name] = _passes.get(name, 0) + 1
    if _passes[name] == int(passes or 1):
        os.kill(int(os.environ.get(VICTIM) or os.getpid()), signal.SIGKILL)
