"""The supervisor starts in order, starts again what ends, gives up, and leaves nothing behind."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from floe.execution.spark.processes import start_of, wait_until
from floe.services import units
from floe.services.plan import Plan
from floe.services.service import CannotTellError, Service, Verdict
from floe.services.state import Standing, Up, read_up, state_file
from floe.services.supervisor import Stopping, supervise
from floe.settings import ProjectPaths
from tests.services.conftest import MakeService

pytestmark = pytest.mark.slow

DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"


@pytest.fixture(autouse=True)
def _in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "LONGEST_PAUSE", 0.01)
    monkeypatch.setattr(units, "ASK_AT_START", 0.01)
    monkeypatch.setattr(units, "ASK_LATER", 0.01)


class Watched:
    """A supervisor at work, and all that it has told."""

    def __init__(self, stopping: Stopping) -> None:
        self.stopping = stopping
        self.told: list[Up] = []

    def now(self, name: str) -> Standing:
        return next(one for one in self.told[-1].services if one.name == name)

    def wait(self, name: str, true: Callable[[Standing], bool]) -> Standing:
        assert wait_until(lambda: bool(self.told) and true(self.now(name)), 30), self.told[-1]
        return self.now(name)

    def order(self, state: str) -> list[str]:
        """The services in the order in which they came to a state."""
        seen: dict[str, None] = {}
        for up in self.told:
            seen |= {one.name: None for one in up.services if one.state == state}
        return list(seen)


@contextmanager
def supervised(paths: ProjectPaths, *services: Service) -> Iterator[Watched]:
    runtime = paths.root / "runtime"
    runtime.mkdir()
    watched = Watched(Stopping())
    plan = Plan(services, runtime, ("a note",))
    arguments = (paths, plan, watched.stopping, watched.told.append)
    thread = threading.Thread(target=supervise, args=arguments)
    thread.start()
    try:
        yield watched
    finally:
        watched.stopping.ask()
        thread.join(60)
        assert not thread.is_alive()


def test_who_needs_another_waits_for_it_and_stops_before_it(
    paths: ProjectPaths, service: MakeService
) -> None:
    last = service("web", needs=("code", "absent"))
    with supervised(paths, last, service("code")) as watched:
        watched.wait("web", lambda one: one.state == "running")
    assert watched.order("starting") == ["code", "web"]
    assert watched.order("stopped") == ["web", "code"]


def test_what_is_up_is_on_record_and_no_longer_when_it_has_stopped(
    paths: ProjectPaths, service: MakeService
) -> None:
    with supervised(paths, service("web", address="http://here")) as watched:
        standing = watched.wait("web", lambda one: one.state == "running")
        up = read_up(paths)
        assert up is not None
        assert up.services == (standing,)
        assert (up.pid, up.alive, up.notes) == (os.getpid(), True, ("a note",))
        assert (standing.address, standing.alive) == ("http://here", True)
        assert state_file(paths).stat().st_mode & 0o777 == 0o600
    assert read_up(paths) is None
    assert not standing.alive
    assert not up.runtime.exists()


def test_a_service_that_is_killed_is_started_again(
    paths: ProjectPaths, service: MakeService
) -> None:
    with supervised(paths, service("web")) as watched:
        first = watched.wait("web", lambda one: one.state == "running")
        assert first.pid is not None
        os.kill(first.pid, signal.SIGKILL)
        second = watched.wait("web", lambda one: one.state == "running" and one.restarts == 1)
        assert second.pid != first.pid
        assert "by signal 9" in " ".join(one.services[0].said for one in watched.told)


def test_a_service_that_cannot_start_is_given_up_with_the_reason(
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
        found = watched.wait("web", lambda one: one.state == "failed")
        assert found.restarts == units.ATTEMPTS
        assert found.said.startswith("ended with code 1: no such database; given up")
        assert watched.now("daemon").state == "waiting"
        assert watched.told[-1].settled


def test_one_that_is_not_ready_in_time_is_started_again(
    paths: ProjectPaths, service: MakeService
) -> None:
    never = service("web", probe=lambda: Verdict(False, "no answer"), start_seconds=0.2)
    with supervised(paths, never) as watched:
        watched.wait("web", lambda one: one.restarts >= 1)
        said = " ".join(one.services[0].said for one in watched.told)
        assert "was not ready after 0 s" in said


def test_one_that_stops_answering_is_shown_and_then_started_again(
    paths: ProjectPaths, service: MakeService
) -> None:
    verdicts = [Verdict(True), *[Verdict(False, "no answer")] * units.MISSES_FATAL]
    probe = iter(verdicts)
    one = service("web", probe=lambda: next(probe, Verdict(True)))
    with supervised(paths, one) as watched:
        watched.wait("web", lambda one: one.restarts == 1 and one.state == "running")
    states = [up.services[0].state for up in watched.told]
    assert [state for state in states if state in ("unhealthy", "restarting")] == [
        "unhealthy",
        "restarting",
    ]


def test_nothing_follows_from_one_who_cannot_tell(
    paths: ProjectPaths, service: MakeService
) -> None:
    asked = []

    def probe() -> Verdict:
        asked.append(1)
        if len(asked) > 1:
            raise CannotTellError
        return Verdict(True)

    with supervised(paths, service("daemon", probe=probe)) as watched:
        assert wait_until(lambda: len(asked) > 2 * units.MISSES_FATAL, 30)
        assert watched.now("daemon").state == "running"


def test_work_that_is_done_once_lets_others_begin(
    paths: ProjectPaths, service: MakeService
) -> None:
    home = service("home", "print('made')", once=True)
    with supervised(paths, home, service("web", needs=("home",))) as watched:
        watched.wait("web", lambda one: one.state == "running")
        assert watched.now("home").state == "done"
        assert watched.now("home").restarts == 0


def test_what_is_somebody_elses_is_shown_and_left_alone(
    paths: ProjectPaths, service: MakeService, tmp_path: Path
) -> None:
    cleaned: list[str] = []
    spark = Service(
        "spark", (), tmp_path / "l", tmp_path, address="sc://x", clean=lambda: cleaned.append("x")
    )
    with supervised(paths, spark, service("web", needs=("spark",))) as watched:
        watched.wait("web", lambda one: one.state == "running")
        assert watched.now("spark").state == "foreign"
    assert cleaned == []


def test_one_that_does_not_want_to_end_is_killed_when_its_time_is_up(
    paths: ProjectPaths, service: MakeService
) -> None:
    with supervised(paths, service("web", DEAF, grace=0.2)) as watched:
        pid = watched.wait("web", lambda one: one.state == "running").pid
    assert pid is not None
    assert start_of(pid) is None


def test_who_insists_does_not_wait(paths: ProjectPaths, service: MakeService) -> None:
    with supervised(paths, service("web", DEAF, grace=600)) as watched:
        pid = watched.wait("web", lambda one: one.state == "running").pid
        watched.stopping.ask()
    assert pid is not None
    assert start_of(pid) is None


def test_stopping_during_the_start_leaves_nothing(
    paths: ProjectPaths, service: MakeService
) -> None:
    never = service("web", probe=lambda: Verdict(False, "no answer"))
    with supervised(paths, never) as watched:
        pid = watched.wait("web", lambda one: one.state == "starting").pid
    assert pid is not None
    assert start_of(pid) is None
    assert read_up(paths) is None


def test_what_a_service_may_have_left_is_removed_at_the_end(
    paths: ProjectPaths, service: MakeService
) -> None:
    cleaned: list[str] = []
    with supervised(paths, service("spark", clean=lambda: cleaned.append("spark"))) as watched:
        watched.wait("spark", lambda one: one.state == "running")
    assert cleaned == ["spark"]
