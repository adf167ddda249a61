"""Keeps the services of a project running, and tells everybody how they stand."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

from floe import clock
from floe.execution.spark.processes import start_of
from floe.services.plan import Plan
from floe.services.state import Up, forget_up, write_up
from floe.services.units import Unit
from floe.settings import ProjectPaths

TICK_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Report = Callable[[Up], None]


class Stopping:
    """What signals ask for: to stop, and, when they come again, to hurry."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def asked(self) -> bool:
        return self.count > 0

    @property
    def hurried(self) -> bool:
        return self.count > 1

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        self.count += 1


@contextmanager
def stopped_by_signals() -> Iterator[Stopping]:
    """Turn signals into wishes. Children start with the signals as the system has them."""
    stopping = Stopping()
    before = {number: signal.signal(number, stopping.ask) for number in SIGNALS}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def supervise(
    paths: ProjectPaths, plan: Plan, stopping: Stopping, report: Report = lambda up: None
) -> Up:
    """Keep services up until asked to stop, then stop them; return how they stood before."""
    supervisor = _Supervisor(paths, plan, report)
    try:
        while not stopping.asked:
            supervisor.step()
            time.sleep(TICK_SECONDS)
        return supervisor.now()
    finally:
        supervisor.stop(stopping)


class _Supervisor:
    def __init__(self, paths: ProjectPaths, plan: Plan, report: Report) -> None:
        self._paths, self._report = paths, report
        self._pool = ThreadPoolExecutor(thread_name_prefix="probe")
        start = start_of(os.getpid()) or ""
        self._head = Up(os.getpid(), start, clock.now(), plan.runtime, plan.notes)
        self._units = [Unit(service, self._pool, self._tell) for service in plan.services]
        self._by_name = {unit.service.name: unit for unit in self._units}
        self._tell()

    def step(self) -> None:
        for unit in self._units:
            unit.step(self._is_ready)

    def stop(self, stopping: Stopping) -> None:
        left = list(self._units)
        while left:
            # Whoever is needed by nobody any more.
            wave = [unit for unit in left if not any(_needs(one, unit) for one in left)]
            for unit in wave:
                unit.ask_to_stop()
            while not stopping.hurried and not all(unit.may_be_buried() for unit in wave):
                time.sleep(TICK_SECONDS)
            for unit in wave:
                unit.bury()
                left.remove(unit)
        self._pool.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._head.runtime, ignore_errors=True)
        forget_up(self._paths)

    def _is_ready(self, name: str) -> bool:
        # What was left out by choice is waited for by nobody.
        return name not in self._by_name or self._by_name[name].ready

    def now(self) -> Up:
        return replace(self._head, services=tuple(unit.standing() for unit in self._units))

    def _tell(self) -> None:
        up = self.now()
        write_up(self._paths, up)
        self._report(up)


def _needs(one: Unit, other: Unit) -> bool:
    return other.service.name in one.service.needs
