"""A child waits behind its gate, and goes with all that it has started."""

import os
import signal
from pathlib import Path

from floe.execution.spark.processes import start_of, wait_until
from floe.services.children import LOG_LIMIT, Child, members
from tests.services.conftest import MakeService

PARENT = """
import subprocess, sys, time
inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(inner.pid, flush=True)
time.sleep(600)
"""


def said(log: Path) -> list[str]:
    return [line for line in log.read_text().splitlines() if not line.startswith("---")]


def test_nothing_runs_before_the_gate_opens(service: MakeService) -> None:
    one = service("one", "print('here')")
    child = Child(one)
    assert child.exit_code() is None
    assert said(one.log) == []
    child.release()
    assert wait_until(lambda: child.exit_code() == 0, 20)
    child.bury()
    assert said(one.log) == ["here"]


def test_a_child_whose_gate_never_opens_ends_without_having_run(service: MakeService) -> None:
    one = service("one", "print('here')")
    child = Child(one)
    # As when the supervisor is killed: the other end of the gate is gone.
    assert child._process.stdin is not None
    child._process.stdin.close()
    assert wait_until(lambda: child.exit_code() is not None, 20)
    child.bury()
    assert said(one.log) == []


def test_its_number_and_start_stay_when_it_becomes_the_command(service: MakeService) -> None:
    one = service("one", "import os, time; print(os.getpid(), flush=True); time.sleep(600)")
    child = Child(one)
    child.release()
    assert wait_until(lambda: said(one.log) != [], 20)
    assert said(one.log) == [str(child.pid)]
    assert start_of(child.pid) == child.start
    child.bury()
    assert start_of(child.pid) is None


def test_what_it_has_started_goes_with_it_even_if_it_was_killed(service: MakeService) -> None:
    one = service("one", PARENT)
    child = Child(one)
    child.release()
    assert wait_until(lambda: said(one.log) != [], 20)
    inner = int(said(one.log)[0])
    assert members(child.pid) == sorted([inner, child.pid], reverse=True)
    os.kill(child.pid, signal.SIGKILL)
    assert wait_until(lambda: child.exit_code() == -signal.SIGKILL, 20)
    assert members(child.pid) == [inner]
    child.bury()
    assert wait_until(lambda: members(child.pid) == [], 20)


def test_its_log_is_its_owners_and_begins_anew_when_it_is_long(service: MakeService) -> None:
    one = service("one", "print('here')")
    one.log.write_bytes(b"x" * (LOG_LIMIT + 1))
    child = Child(one)
    child.release()
    assert wait_until(lambda: child.exit_code() == 0, 20)
    child.bury()
    assert one.log.stat().st_mode & 0o777 == 0o600
    assert said(one.log) == ["here"]
    assert one.log.with_name("one.log.1").stat().st_size == LOG_LIMIT + 1
