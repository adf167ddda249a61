"""Keep the services of a project running: start, probe, restart and stop them."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from floe import clock
from floe.execution.os_processes import start_of
from floe.execution.spark.server_files import last_lines
from floe.services.child_processes import Child
from floe.services.plan import Plan
from floe.services.service import InconclusiveProbeError, Service, Verdict
from floe.services.state import READY, ServiceStatus, State, Up, remove_up, write_up
from floe.settings import ProjectPaths

ATTEMPTS = 5
"""Restarts in a row before a service counts as failed."""
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0
"""After running this long, a service's restarts count from zero again."""
PROBE_SECONDS_AT_START, PROBE_SECONDS = 0.3, 5.0
"""Seconds between two probes of a service."""
MISSES_UNHEALTHY, MISSES_FATAL = 3, 12
"""Failed probes in a row until a service is shown as unhealthy, or restarted."""


class Unit:
    """A service with its current state and process."""

    def __init__(self, service: Service, pool: Executor, changed: Callable[[], None]) -> None:
        self.service = service
        self.state: State = "waiting" if service.command else "foreign"
        self.restarts = 0
        self._changed, self._pool = changed, pool
        self._since, self._message, self._address = clock.now(), "", service.address
        self._state_since = time.monotonic()
        self._child: Child | None = None
        self._failures = self._misses = 0
        self._pending_probe: Future[Verdict] | None = None
        self._probed_at = 0.0

    @property
    def ready(self) -> bool:
        return self.state in READY

    def status(self) -> ServiceStatus:
        """Return the service's state."""
        child, service = self._child, self.service
        return ServiceStatus(
            name=service.name,
            state=self.state,
            since=self._since,
            log=service.log,
            address=self._address,
            pid=None if child is None else child.pid,
            start=None if child is None else child.start,
            restarts=self.restarts,
            message=self._message,
        )

    def step(self, is_ready: Callable[[str], bool]) -> None:
        """Start, probe or restart the service if due; never block."""
        if self.state == "waiting":
            if all(map(is_ready, self.service.needs)):
                self._launch()
        elif self.state == "restarting":
            if time.monotonic() >= self._state_since + self._pause():
                self.restarts += 1
                self._launch()
        elif self._child is not None:
            self._check_child(self._child)

    def request_stop(self) -> None:
        """Ask the process to stop for good."""
        if self._child is not None:
            self._set_state("stopping")
            self._child.terminate()

    def is_stop_due(self) -> bool:
        """Tell whether it has ended, or its grace period is over."""
        ended = self._child is None or self._child.exit_code() is not None
        return ended or time.monotonic() > self._state_since + self.service.grace

    def finish_stop(self) -> None:
        """Kill what is left of the process, and clean up after it."""
        self._kill_child()
        if self.service.command:
            self.service.clean()
        if self.state not in ("foreign", "done", "failed"):
            self._set_state("stopped")

    def _launch(self) -> None:
        self._pending_probe, self._misses = None, 0
        self._child = Child(self.service)
        # Recorded before the command starts.
        self._set_state("starting")
        self._child.release()

    def _check_child(self, child: Child) -> None:
        code = child.exit_code()
        if code is not None:
            self._on_exit(code)
        elif self._is_late():
            self._fail(f"was not ready after {self.service.start_seconds:.0f} s")
        elif not self.service.once:
            self._probe()

    def _on_exit(self, code: int) -> None:
        if self.service.once and code == 0:
            self._kill_child()
            self._set_state("done")
        else:
            by = f"by signal {-code}" if code < 0 else f"with code {code}"
            self._fail(f"ended {by}")

    def _fail(self, why: str) -> None:
        self._kill_child()
        self._failures += 1
        message = f"{why}{_last_log_line(self.service.log)}"
        if self._failures > ATTEMPTS:
            self._set_state("failed", f"{message}; given up after {ATTEMPTS} restarts")
        else:
            self._set_state("restarting", message)

    def _probe(self) -> None:
        """Probe the service in another thread at intervals, and apply the result."""
        if self._pending_probe is not None and self._pending_probe.done():
            probe, self._pending_probe = self._pending_probe, None
            try:
                self._apply_verdict(probe.result())
            except InconclusiveProbeError:
                return
        interval = PROBE_SECONDS if self.state in ("running", "faulty") else PROBE_SECONDS_AT_START
        if self._pending_probe is None and time.monotonic() >= self._probed_at + interval:
            self._probed_at = time.monotonic()
            self._pending_probe = self._pool.submit(self.service.probe)

    def _apply_verdict(self, verdict: Verdict) -> None:
        if verdict.healthy:
            self._misses = 0
            self._address = verdict.address or self.service.address
            state: State = "faulty" if verdict.faulty else "running"
            if self.state != state or verdict.message != self._message:
                self._set_state(state, verdict.message)
            elif time.monotonic() > self._state_since + STEADY_SECONDS:
                self._failures = 0
        elif self.state != "starting":
            self._misses += 1
            if self._misses >= MISSES_FATAL:
                self._fail(verdict.message)
            elif self._misses >= MISSES_UNHEALTHY and self.state in ("running", "faulty"):
                self._set_state("unhealthy", verdict.message)
        elif verdict.message != self._message:
            self._message = verdict.message

    def _is_late(self) -> bool:
        late = time.monotonic() > self._state_since + self.service.start_seconds
        return self.state == "starting" and late

    def _pause(self) -> float:
        return min(LONGEST_PAUSE, 0.5 * 2.0**self._failures)

    def _kill_child(self) -> None:
        if self._child is not None:
            self._child.kill()
        self._child = None

    def _set_state(self, state: State, message: str = "") -> None:
        if state != self.state:
            self._since = clock.now()
            self._state_since = time.monotonic()
        self.state, self._message = state, message
        self._changed()


def _last_log_line(log: Path) -> str:
    lines = [line.strip() for line in last_lines(log, 20) if line.strip()]
    last = lines[-1] if lines and not lines[-1].startswith("--- started") else ""
    return f": {last[:300]}" if last else ""


TICK_SECONDS = 0.1
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
Report = Callable[[Up], None]


class StopRequest:
    """Counts stop signals: the first asks to stop, the next ones to kill at once."""

    def __init__(self) -> None:
        self.count = 0

    @property
    def requested(self) -> bool:
        return self.count > 0

    @property
    def forced(self) -> bool:
        return self.count > 1

    def request(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self.count += 1


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Turn stop signals into a request. Children get the default signal handlers."""
    stopping = StopRequest()
    before = {signum: signal.signal(signum, stopping.request) for signum in SIGNALS}
    try:
        yield stopping
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def supervise(
    paths: ProjectPaths, plan: Plan, stopping: StopRequest, report: Report = lambda up: None
) -> Up:
    """Keep services up until asked to stop; return their last state before the stop."""
    supervisor = _Supervisor(paths, plan, report)
    try:
        while not stopping.requested:
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
        self._units = [Unit(service, self._pool, self._publish) for service in plan.services]
        self._by_name = {unit.service.name: unit for unit in self._units}
        self._publish()

    def step(self) -> None:
        for unit in self._units:
            unit.step(self._is_ready)

    def stop(self, stopping: StopRequest) -> None:
        left = list(self._units)
        while left:
            # Services that no other running service needs.
            wave = [unit for unit in left if not any(_needs(other, unit) for other in left)]
            for unit in wave:
                unit.request_stop()
            while not stopping.forced and not all(unit.is_stop_due() for unit in wave):
                time.sleep(TICK_SECONDS)
            for unit in wave:
                unit.finish_stop()
                left.remove(unit)
        self._pool.shutdown(wait=False, cancel_futures=True)
        shutil.rmtree(self._head.runtime, ignore_errors=True)
        remove_up(self._paths)

    def _is_ready(self, name: str) -> bool:
        # Never wait for a service that --only left out.
        return name not in self._by_name or self._by_name[name].ready

    def now(self) -> Up:
        return replace(self._head, services=tuple(unit.status() for unit in self._units))

    def _publish(self) -> None:
        up = self.now()
        write_up(self._paths, up)
        self._report(up)


def _needs(unit: Unit, other: Unit) -> bool:
    return other.service.name in unit.service.needs
