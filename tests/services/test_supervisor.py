"""The supervisor starts in order, restarts, gives up, and leaves no process behind."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from floe.execution.os_processes import start_of, wait_until
from floe.services import supervisor
from floe.services.plan import Plan
from floe.services.service import InconclusiveProbeError, Service, Verdict
from floe.services.state import ServiceStatus, Up, read_up, state_file
from floe.services.supervisor import StopRequest, supervise
from floe.settings import ProjectPaths
from tests.services.conftest import MakeService

pytestmark = pytest.mark.slow

IGNORES_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
)


@pytest.fixture(autouse=True)
def _short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(supervisor, "PROBE_SECONDS_AT_START", 0.01)
    monkeypatch.setattr(supervisor, "PROBE_SECONDS", 0.01)


class Watched:
    """A running supervisor, and all the states it has reported."""

    def __init__(self, stopping: StopRequest) -> None:
        self.stopping = stopping
        self.reports: list[Up] = []

    def now(self, name: str) -> ServiceStatus:
        return next(service for service in self.reports[-1].services if service.name == name)

    def wait(self, name: str, reached: Callable[[ServiceStatus], bool]) -> ServiceStatus:
        done = wait_until(lambda: bool(self.reports) and reached(self.now(name)), 30)
        assert done, self.reports[-1]
        return self.now(name)

    def order(self, state: str) -> list[str]:
        """Return the services in the order in which they reached a state."""
        seen: dict[str, None] = {}
        for up in self.reports:
            seen |= {service.name: None for service in up.services if service.state == state}
        return list(seen)


@contextmanager
def supervised(paths: ProjectPaths, *services: Service) -> Iterator[Watched]:
    runtime = paths.root / "runtime"
    runtime.mkdir()
    watched = Watched(StopRequest())
    plan = Plan(services, runtime, ("a note",))
    arguments = (paths, plan, watched.stopping, watched.reports.append)
    thread = threading.Thread(target=supervise, args=arguments)
    thread.start()
    try:
        yield watched
    finally:
        watched.stopping.request()
        thread.join(60)
        assert not thread.is_alive()


def test_a_service_starts_after_those_it_needs_and_stops_before_them(
    paths: ProjectPaths, service: MakeService
) -> None:
    last = service("web", needs=("code", "absent"))
    with supervised(paths, last, service("code")) as watched:
        watched.wait("web", lambda status: status.state == "running")
    assert watched.order("starting") == ["code", "web"]
    assert watched.order("stopped") == ["web", "code"]


def test_the_state_is_recorded_while_up_and_removed_after_the_stop(
    paths: ProjectPaths, service: MakeService
) -> None:
    with supervised(paths, service("web", address="http://here")) as watched:
        status = watched.wait("web", lambda status: status.state == "running")
        up = read_up(paths)
        assert up is not None
        assert up.services == (status,)
        assert (up.pid, up.alive, up.notes) == (os.getpid(), True, ("a note",))
        assert (status.address, status.alive) == ("http://here", True)
        assert state_file(paths).stat().st_mode & 0o777 == 0o600
    assert read_up(paths) is None
    assert not status.alive
    assert not up.runtime.exists()


def test_a_killed_service_is_restarted(paths: ProjectPaths, service: MakeService) -> None:
    with supervised(paths, service("web")) as watched:
        first = watched.wait("web", lambda status: status.state == "running")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        second = watched.wait(
            "web", lambda status: status.state == "running" and status.restarts == 1
        )
        assert second.pid != first.pid
        assert "by signal 9" in " ".join(up.services[0].message for up in watched.reports)


def test_a_service_that_cannot_start_fails_with_the_reason(
    paths: ProjectPaths, service: MakeService
) -> None:
    # It never answers: a slow start must not look like a service that is up.
    broken = service(
        "web",
        "raise SystemExit('no such database')",
        probe=lambda: Verdict(False, "no answer"),
        start_seconds=600,
    )
    later = service("daemon", needs=("web",))
    with supervised(paths, broken, later) as watched:
        status = watched.wait("web", lambda web: web.state == "failed")
        assert status.restarts == supervisor.ATTEMPTS
        assert status.message.startswith("ended with code 1: no such database; given up")
        assert watched.now("daemon").state == "waiting"
        assert watched.reports[-1].settled


def test_a_service_that_is_not_ready_in_time_is_restarted(
    paths: ProjectPaths, service: MakeService
) -> None:
    never = service("web", probe=lambda: Verdict(False, "no answer"), start_seconds=0.2)
    with supervised(paths, never) as watched:
        watched.wait("web", lambda status: status.restarts >= 1)
        message = " ".join(up.services[0].message for up in watched.reports)
        assert "was not ready after 0 s" in message


def test_a_service_that_stops_answering_becomes_unhealthy_and_is_restarted(
    paths: ProjectPaths, service: MakeService
) -> None:
    verdicts = [Verdict(True), *[Verdict(False, "no answer")] * supervisor.MISSES_FATAL]
    probe = iter(verdicts)
    web = service("web", probe=lambda: next(probe, Verdict(True)))
    with supervised(paths, web) as watched:
        watched.wait("web", lambda status: status.restarts == 1 and status.state == "running")
    states = [up.services[0].state for up in watched.reports]
    assert [state for state in states if state in ("unhealthy", "restarting")] == [
        "unhealthy",
        "restarting",
    ]


def test_an_inconclusive_probe_does_not_change_the_state(
    paths: ProjectPaths, service: MakeService
) -> None:
    calls = []

    def probe() -> Verdict:
        calls.append(1)
        if len(calls) > 1:
            raise InconclusiveProbeError
        return Verdict(True)

    with supervised(paths, service("daemon", probe=probe)) as watched:
        assert wait_until(lambda: len(calls) > 2 * supervisor.MISSES_FATAL, 30)
        assert watched.now("daemon").state == "running"


def test_services_wait_for_one_time_work_to_finish(
    paths: ProjectPaths, service: MakeService
) -> None:
    home = service("home", "print('made')", once=True)
    with supervised(paths, home, service("web", needs=("home",))) as watched:
        watched.wait("web", lambda status: status.state == "running")
        assert watched.now("home").state == "done"
        assert watched.now("home").restarts == 0


def test_a_foreign_service_is_shown_and_not_cleaned_up(
    paths: ProjectPaths, service: MakeService, tmp_path: Path
) -> None:
    cleaned: list[str] = []
    spark = Service(
        "spark", (), tmp_path / "l", tmp_path, address="sc://x", clean=lambda: cleaned.append("x")
    )
    with supervised(paths, spark, service("web", needs=("spark",))) as watched:
        watched.wait("web", lambda status: status.state == "running")
        assert watched.now("spark").state == "foreign"
    assert cleaned == []


def test_a_service_that_ignores_sigterm_is_killed_after_its_grace_period(
    paths: ProjectPaths, service: MakeService
) -> None:
    with supervised(paths, service("web", IGNORES_SIGTERM, grace=0.2)) as watched:
        pid = watched.wait("web", lambda status: status.state == "running").pid
    assert pid is not None
    assert start_of(pid) is None


def test_a_second_signal_kills_at_once(paths: ProjectPaths, service: MakeService) -> None:
    with supervised(paths, service("web", IGNORES_SIGTERM, grace=600)) as watched:
        pid = watched.wait("web", lambda status: status.state == "running").pid
        watched.stopping.request()
    assert pid is not None
    assert start_of(pid) is None


def test_stopping_during_the_start_leaves_no_process(
    paths: ProjectPaths, service: MakeService
) -> None:
    never = service("web", probe=lambda: Verdict(False, "no answer"))
    with supervised(paths, never) as watched:
        pid = watched.wait("web", lambda status: status.state == "starting").pid
    assert pid is not None
    assert start_of(pid) is None
    assert read_up(paths) is None


def test_a_service_is_cleaned_up_after_it_has_stopped(
    paths: ProjectPaths, service: MakeService
) -> None:
    cleaned: list[str] = []
    with supervised(paths, service("spark", clean=lambda: cleaned.append("spark"))) as watched:
        watched.wait("spark", lambda status: status.state == "running")
    assert cleaned == ["spark"]
