"""A process is identified by its start time as well as its pid."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from floe.execution.os_processes import count_connections, end_process, is_running, start_of

STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True)"


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def test_a_process_runs_until_it_ends(sleeper: subprocess.Popen[bytes]) -> None:
    start = start_of(sleeper.pid)
    assert start is not None
    assert is_running(sleeper.pid, start)
    # Not waited for: what is left of it in the table of processes does not run.
    os.kill(sleeper.pid, signal.SIGKILL)
    os.waitid(os.P_PID, sleeper.pid, os.WEXITED | os.WNOWAIT)
    assert start_of(sleeper.pid) is None


def test_another_process_with_the_same_pid_is_left_alone(
    sleeper: subprocess.Popen[bytes],
) -> None:
    assert not is_running(sleeper.pid, "some other boot/12345")
    end_process(sleeper.pid, "some other boot/12345")
    assert sleeper.poll() is None


def test_a_process_that_ignores_sigterm_is_killed() -> None:
    code = f"{STUBBORN}; time.sleep(60)"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        end_process(process.pid, start_of(process.pid) or "", grace=0.2)
        assert process.wait(10) == -signal.SIGKILL


def test_clients_of_a_port_are_counted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        assert count_connections(port) == 0
        with socket.create_connection(("127.0.0.1", port)):
            assert count_connections(port) == 1
