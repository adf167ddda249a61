"""What a killed supervisor left is found by number and start, and ended; nobody else's is."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe import clock
from floe.execution.site import Site
from floe.execution.spark.processes import start_of, wait_until
from floe.services.children import Child
from floe.services.leftovers import end_leftovers, left, seen_now
from floe.services.state import Standing, State, Up, read_up, write_up
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from tests.services.conftest import MakeService
from tests.services.test_children import PARENT, said


@pytest.fixture
def site(paths: ProjectPaths) -> Site:
    return Site(paths, ProjectSpec(name="night"), PlatformSpec())


@pytest.fixture
def child(service: MakeService) -> Iterator[Child]:
    one = service("web", PARENT)
    child = Child(one)
    child.release()
    assert wait_until(lambda: said(one.log) != [], 20)
    yield child
    child.bury()


def standing(pid: int | None, start: str | None, state: State = "running") -> Standing:
    return Standing("web", state, clock.now(), Path("web.log"), pid=pid, start=start)


def killed(site: Site, *services: Standing) -> Up:
    """A supervisor that is no more."""
    runtime = site.root / "runtime"
    runtime.mkdir()
    up = Up(1, "another start", clock.now(), runtime, services=services)
    write_up(site.paths, up)
    return up


def test_leftovers_are_ended_with_what_they_started(site: Site, child: Child) -> None:
    up = killed(site, standing(child.pid, child.start))
    assert seen_now(up).services[0].state == "left over"
    end_leftovers(site, up)
    assert left(up.services[0]) == []
    assert read_up(site.paths) is None
    assert not up.runtime.exists()


def test_what_a_dead_leftover_has_started_is_ended_too(site: Site, child: Child) -> None:
    up = killed(site, standing(child.pid, child.start))
    os.kill(child.pid, signal.SIGKILL)
    assert wait_until(lambda: start_of(child.pid) is None, 20)
    assert len(left(up.services[0])) == 1
    end_leftovers(site, up)
    assert left(up.services[0]) == []


def test_a_process_that_has_got_the_number_of_another_is_left_alone(
    site: Site, child: Child
) -> None:
    up = killed(site, standing(child.pid, "an earlier start"))
    assert seen_now(up).services[0].state == "gone"
    end_leftovers(site, up)
    assert start_of(child.pid) == child.start


def test_what_had_ended_before_stays_as_it_was(site: Site) -> None:
    up = killed(site, standing(None, None, "done"))
    assert seen_now(up) == up


def test_services_of_a_supervisor_that_lives_are_as_it_says(site: Site) -> None:
    up = Up(os.getpid(), start_of(os.getpid()) or "", clock.now(), site.root)
    assert seen_now(up) is up
