"""One service on its way: waiting, starting, running, ended, started again, given up."""

import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path

from floe import clock
from floe.execution.spark.logs import last_lines
from floe.services.children import Child
from floe.services.service import CannotTellError, Service, Verdict
from floe.services.state import READY, Standing, State

ATTEMPTS = 5
"""How often in a row it is started again before it is given up."""
LONGEST_PAUSE = 30.0
STEADY_SECONDS = 60.0
"""Who has run this long begins a new count."""
ASK_AT_START, ASK_LATER = 0.3, 5.0
"""Seconds between two looks at a service."""
MISSES_UNHEALTHY, MISSES_FATAL = 3, 12
"""So many looks in a row without an answer, and it is shown, or started again."""


class Unit:
    """A service, and the process that it is at the moment."""

    def __init__(self, service: Service, pool: Executor, changed: Callable[[], None]) -> None:
        self.service = service
        self.state: State = "waiting" if service.command else "foreign"
        self.restarts = 0
        self._changed, self._pool = changed, pool
        self._since, self._said, self._address = clock.now(), "", service.address
        self._moved_at = time.monotonic()
        self._child: Child | None = None
        self._in_a_row = self._misses = 0
        self._asked: Future[Verdict] | None = None
        self._asked_at = 0.0

    @property
    def ready(self) -> bool:
        return self.state in READY

    def standing(self) -> Standing:
        """Say how it stands."""
        child, service = self._child, self.service
        return Standing(
            name=service.name,
            state=self.state,
            since=self._since,
            log=service.log,
            address=self._address,
            pid=None if child is None else child.pid,
            start=None if child is None else child.start,
            restarts=self.restarts,
            said=self._said,
        )

    def step(self, is_ready: Callable[[str], bool]) -> None:
        """Do what is due now; nothing here waits."""
        if self.state == "waiting":
            if all(map(is_ready, self.service.needs)):
                self._launch()
        elif self.state == "restarting":
            if time.monotonic() >= self._moved_at + self._pause():
                self.restarts += 1
                self._launch()
        elif self._child is not None:
            self._watch(self._child)

    def ask_to_stop(self) -> None:
        """Ask it to end for good."""
        if self._child is not None:
            self._move("stopping")
            self._child.ask()

    def may_be_buried(self) -> bool:
        """Tell whether it has ended, or has taken longer than it may."""
        ended = self._child is None or self._child.exit_code() is not None
        return ended or time.monotonic() > self._moved_at + self.service.grace

    def bury(self) -> None:
        """Make sure that it is gone, with all that it may have left."""
        self._bury()
        if self.service.command:
            self.service.clean()
        if self.state not in ("foreign", "done", "failed"):
            self._move("stopped")

    def _launch(self) -> None:
        self._asked, self._misses = None, 0
        self._child = Child(self.service)
        # On record before it does anything.
        self._move("starting")
        self._child.release()

    def _watch(self, child: Child) -> None:
        code = child.exit_code()
        if code is not None:
            self._end(code)
        elif self._is_late():
            self._fail(f"was not ready after {self.service.start_seconds:.0f} s")
        elif not self.service.once:
            self._ask()

    def _end(self, code: int) -> None:
        if self.service.once and code == 0:
            self._bury()
            self._move("done")
        else:
            by = f"by signal {-code}" if code < 0 else f"with code {code}"
            self._fail(f"ended {by}")

    def _fail(self, why: str) -> None:
        self._bury()
        self._in_a_row += 1
        said = f"{why}{_last_words(self.service.log)}"
        if self._in_a_row > ATTEMPTS:
            self._move("failed", f"{said}; given up after {ATTEMPTS} restarts")
        else:
            self._move("restarting", said)

    def _ask(self) -> None:
        """Have it looked at by another thread, now and then; take in what was found."""
        if self._asked is not None and self._asked.done():
            found, self._asked = self._asked, None
            try:
                self._judge(found.result())
            except CannotTellError:
                return
        between = ASK_LATER if self.state in ("running", "faulty") else ASK_AT_START
        if self._asked is None and time.monotonic() >= self._asked_at + between:
            self._asked_at = time.monotonic()
            self._asked = self._pool.submit(self.service.probe)

    def _judge(self, verdict: Verdict) -> None:
        if verdict.well:
            self._misses = 0
            self._address = verdict.address or self.service.address
            state: State = "faulty" if verdict.faulty else "running"
            if self.state != state or verdict.said != self._said:
                self._move(state, verdict.said)
            elif time.monotonic() > self._moved_at + STEADY_SECONDS:
                self._in_a_row = 0
        elif self.state != "starting":
            self._misses += 1
            if self._misses >= MISSES_FATAL:
                self._fail(verdict.said)
            elif self._misses >= MISSES_UNHEALTHY and self.state in ("running", "faulty"):
                self._move("unhealthy", verdict.said)
        elif verdict.said != self._said:
            self._said = verdict.said

    def _is_late(self) -> bool:
        late = time.monotonic() > self._moved_at + self.service.start_seconds
        return self.state == "starting" and late

    def _pause(self) -> float:
        return min(LONGEST_PAUSE, 0.5 * 2.0**self._in_a_row)

    def _bury(self) -> None:
        if self._child is not None:
            self._child.bury()
        self._child = None

    def _move(self, state: State, said: str = "") -> None:
        if state != self.state:
            self._since = clock.now()
            self._moved_at = time.monotonic()
        self.state, self._said = state, said
        self._changed()


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in last_lines(log, 20) if line.strip()]
    last = lines[-1] if lines and not lines[-1].startswith("--- started") else ""
    return f": {last[:300]}" if last else ""
