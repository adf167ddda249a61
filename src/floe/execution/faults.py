"""Points at which a test may kill a process, as a power cut would.

A publish must survive the end of floe, and of Spark, between any two of its steps. FLOE_FAULT
names the point and, behind a colon, the pass; FLOE_FAULT_PID whom to kill instead of this very
process. Without them a point does nothing.
"""

import os
import signal

POINT, VICTIM = "FLOE_FAULT", "FLOE_FAULT_PID"
POINTS = ("reserved", "written", "announced", "published", "ready")
"""All points of a publish, in their order."""
_passes: dict[str, int] = {}


def point(name: str) -> None:
    """Kill here, if this is the point and the pass that are wanted."""
    wanted = os.environ.get(POINT)
    if wanted is None:
        return
    at, _, passes = wanted.partition(":")
    if at != name:
        return
    _passes[name] = _passes.get(name, 0) + 1
    if _passes[name] == int(passes or 1):
        os.kill(int(os.environ.get(VICTIM) or os.getpid()), signal.SIGKILL)
