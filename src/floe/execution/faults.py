"""Points at which a test may end the process, as a power cut would.

A publish must survive its end between any two of its steps. FLOE_FAULT names the point, and after
how many passes; without it a point does nothing.
"""

import os
import signal

VARIABLE = "FLOE_FAULT"
_passes: dict[str, int] = {}


def point(name: str) -> None:
    """End the process here, if this is the point and the pass that FLOE_FAULT names."""
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    at, _, passes = wanted.partition(":")
    if at == name:
        _passes[name] = _passes.get(name, 0) + 1
        if _passes[name] == int(passes or 1):
            os.kill(os.getpid(), signal.SIGKILL)
