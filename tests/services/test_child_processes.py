"""A child waits at its gate, and is killed together with the processes it started."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from floe import clock
from floe.execution.os_processes import start_of, wait_until
from floe.execution.site import Site
from floe.services.child_processes import (
    LOG_LIMIT,
    Child,
    leftover_pids,
    members,
    refresh_states,
    stop_leftovers,
)
from floe.services.state import ServiceStatus, State, Up, read_up, write_up
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from tests.services.conftest import MakeService

PARENT = """
import subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(inner.pid, flush=True)
time.sleep(600)
"""


def output_of(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if not line.startswith("---")]


def test_the_command_does_not_start_before_the_gate_opens(service: MakeService) -> None:
    task = service("task", "print('here')")
    child = Child(task)
    assert child.exit_code() is None
    assert output_of(task.log) == []
    child.release()
    assert wait_until(lambda: child.exit_code() == 0, 20)
    child.kill()
    assert output_of(task.log) == ["here"]


def test_a_child_whose_gate_closes_ends_without_running_the_command(service: MakeService) -> None:
    task = service("task", "print('here')")
    child = Child(task)
    # As if the supervisor was killed: the other end of the pipe closes.
    assert child._process.stdin is not None
    child._process.stdin.close()
    assert wait_until(lambda: child.exit_code() is not None, 20)
    child.kill()
    assert output_of(task.log) == []


def test_a_child_keeps_its_pid_and_start_time_when_the_command_starts(service: MakeService) -> None:
    task = service("task", "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    child = Child(task)
    child.release()
    assert wait_until(lambda: output_of(task.log) != [], 20)
    assert output_of(task.log) == [str(child.pid)]
    assert start_of(child.pid) == child.start
    child.kill()
    assert start_of(child.pid) is None


def test_processes_that_a_killed_child_started_are_killed_too(service: MakeService) -> None:
    task = service("task", PARENT)
    child = Child(task)
    child.release()
    assert wait_until(lambda: output_of(task.log) != [], 20)
    inner = int(output_of(task.log)[0])
    assert members(child.pid) == sorted([inner, child.pid], reverse=True)
    os.kill(child.pid, signal.SIGKILL)
    assert wait_until(lambda: child.exit_code() == -signal.SIGKILL, 20)
    assert members(child.pid) == [inner]
    child.kill()
    assert wait_until(lambda: members(child.pid) == [], 20)


def test_the_log_is_private_and_rotated_when_it_is_long(service: MakeService) -> None:
    task = service("task", "print('here')")
    task.log.write_bytes(b"x" * (LOG_LIMIT + 1))
    child = Child(task)
    child.release()
    assert wait_until(lambda: child.exit_code() == 0, 20)
    child.kill()
    assert task.log.stat().st_mode & 0o777 == 0o600
    assert output_of(task.log) == ["here"]
    assert task.log.with_name("task.log.1").stat().st_size == LOG_LIMIT + 1


@pytest.fixture
def site(paths: ProjectPaths) -> Site:
    return Site(paths, ProjectSpec(name="night"), PlatformSpec())


@pytest.fixture
def child(service: MakeService) -> Iterator[Child]:
    task = service("web", PARENT)
    child = Child(task)
    child.release()
    assert wait_until(lambda: output_of(task.log) != [], 20)
    yield child
    child.kill()


def status(pid: int | None, start: str | None, state: State = "running") -> ServiceStatus:
    return ServiceStatus("web", state, clock.now(), Path("web.log"), pid=pid, start=start)


def killed(site: Site, *services: ServiceStatus) -> Up:
    """Record a supervisor that no longer runs."""
    runtime = site.root / "runtime"
    runtime.mkdir()
    up = Up(1, "another start", clock.now(), runtime, services=services)
    write_up(site.paths, up)
    return up


def test_leftovers_are_stopped_with_the_processes_they_started(site: Site, child: Child) -> None:
    up = killed(site, status(child.pid, child.start))
    assert refresh_states(up).services[0].state == "left over"
    stop_leftovers(site, up)
    assert leftover_pids(up.services[0]) == []
    assert read_up(site.paths) is None
    assert not up.runtime.exists()


def test_processes_that_a_dead_leftover_started_are_stopped_too(site: Site, child: Child) -> None:
    up = killed(site, status(child.pid, child.start))
    os.kill(child.pid, signal.SIGKILL)
    assert wait_until(lambda: start_of(child.pid) is None, 20)
    assert len(leftover_pids(up.services[0])) == 1
    stop_leftovers(site, up)
    assert leftover_pids(up.services[0]) == []


def test_a_process_that_reuses_the_pid_of_a_service_is_not_killed(site: Site, child: Child) -> None:
    up = killed(site, status(child.pid, "an earlier start"))
    assert refresh_states(up).services[0].state == "gone"
    stop_leftovers(site, up)
    assert start_of(child.pid) == child.start


def test_a_service_that_had_ended_keeps_its_state(site: Site) -> None:
    up = killed(site, status(None, None, "done"))
    assert refresh_states(up) == up


def test_the_state_from_a_running_supervisor_is_used_unchanged(site: Site) -> None:
    up = Up(os.getpid(), start_of(os.getpid()) or "", clock.now(), site.root)
    assert refresh_states(up) is up
