"""Processes that a test starts are gone when it ends, even if they ignore signals."""

import signal
import subprocess
import sys

import pytest

from floe.execution.os_processes import start_of
from tools.processes import end, kill, running, start

DEAF = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
time.sleep(600)
"""
MANY = """
import subprocess, sys, time
for _ in range(40):
    print(subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""
TALKATIVE = "import sys\nwhile True: sys.stdout.write('x' * 1000)"


def test_a_process_that_ignores_the_signal_is_killed_with_its_children() -> None:
    process = start([sys.executable, "-c", DEAF], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    end(process, grace=0.2)
    assert process.returncode == -signal.SIGKILL
    assert start_of(child) is None


def test_a_process_that_stops_on_sigterm_is_not_killed() -> None:
    with running(["sleep", "600"]) as process:
        pass
    assert process.returncode == -signal.SIGTERM


def test_a_process_that_has_already_ended_keeps_its_exit_code() -> None:
    with running([sys.executable, "-c", "raise SystemExit(3)"]) as process:
        process.wait()
    assert process.returncode == 3


def test_a_full_pipe_does_not_keep_a_process_from_ending() -> None:
    with running([sys.executable, "-c", TALKATIVE], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
    assert process.returncode == -signal.SIGTERM


def test_a_test_that_fails_leaves_no_process() -> None:
    with pytest.raises(AssertionError), running(["sleep", "600"]) as process:
        raise AssertionError
    assert process.returncode is not None


def test_children_are_gone_when_their_parent_is_killed() -> None:
    process = start([sys.executable, "-c", MANY], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    children = [int(process.stdout.readline()) for _ in range(40)]
    kill(process)
    assert [child for child in children if start_of(child)] == []
