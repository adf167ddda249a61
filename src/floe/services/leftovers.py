"""What a supervisor that was killed has left running, and the end of it."""

import os
import shutil
import signal
from contextlib import suppress
from dataclasses import replace

from floe.execution.site import Site
from floe.execution.spark.processes import start_of, wait_until
from floe.orchestration.home import home_of
from floe.orchestration.launcher.workers import Workers
from floe.services.children import members
from floe.services.errors import NotStoppedError
from floe.services.spark import end_spark
from floe.services.state import Standing, Up, forget_up

GRACE_SECONDS = 40.0


def seen_now(up: Up) -> Up:
    """Say how services stand whose supervisor is dead, by looking at their processes."""
    if up.alive:
        return up
    services = tuple(
        one
        if one.state in ("foreign", "done", "failed", "stopped")
        else replace(one, state="left over" if left(one) else "gone")
        for one in up.services
    )
    return replace(up, services=services)


def left(one: Standing) -> list[int]:
    """Return the processes of a service: its own, and what it has started in its session."""
    if one.pid is None:
        return []
    own = [one.pid] if one.alive else []
    # No number is given out again as long as a session has it: one that was, had none left.
    others = [] if _is_reused(one) else [pid for pid in members(one.pid) if pid != one.pid]
    return [*others, *own]


def end_leftovers(site: Site, up: Up) -> None:
    """End what a killed supervisor left, the last that it started first."""
    for one in reversed(up.services):
        _end(one)
    # Runs are in sessions of their own.
    Workers.of_home(home_of(site)).end()
    if any(one.name == "spark" for one in up.services):
        end_spark(site)
    still = [one.name for one in up.services if left(one)]
    if still:
        raise NotStoppedError(still)
    shutil.rmtree(up.runtime, ignore_errors=True)
    forget_up(site.paths)


def _end(one: Standing) -> None:
    if one.alive and one.pid is not None:
        os.kill(one.pid, signal.SIGTERM)
        wait_until(lambda: not one.alive, GRACE_SECONDS)
    for pid in left(one):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not left(one), GRACE_SECONDS)


def _is_reused(one: Standing) -> bool:
    return one.pid is not None and start_of(one.pid) not in (None, one.start)
