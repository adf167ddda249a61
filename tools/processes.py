"""Processes that tests, benchmarks and demos start: each is ended before its starter goes on."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

GRACE_SECONDS = 30.0
POLL_SECONDS = 0.05


@contextmanager
def running(command: Sequence[str | Path], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Run a command in a session of its own, and end it when the block ends."""
    process = start(command, **options)
    try:
        yield process
    finally:
        end(process)


def start(command: Sequence[str | Path], **options: Any) -> "subprocess.Popen[Any]":
    """Start a command in a session of its own, so that it can be killed with its children."""
    return subprocess.Popen(command, start_new_session=True, **options)


def end(
    process: "subprocess.Popen[Any]",
    number: signal.Signals = signal.SIGTERM,
    grace: float = GRACE_SECONDS,
) -> None:
    """Ask a process to end and wait for it; kill it and its children if it takes too long.

    Some servers do not end on SIGTERM while the machine is busy. A test that waits for them
    without a limit hangs until the test's own timeout.
    """
    process.send_signal(number)
    try:
        _drain(process, grace)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: "subprocess.Popen[Any]") -> None:
    """Kill a process and its children at once, and wait until they are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _drain(process, None)
    while _is_group_running(process.pid):
        time.sleep(POLL_SECONDS)


def _is_group_running(group: int) -> bool:
    """Tell whether a process of a group still runs: the kernel ends each one in its own time."""
    return any(_belongs(process, group) for process in psutil.process_iter())


def _belongs(process: psutil.Process, group: int) -> bool:
    """Tell whether a process is in a group and has not ended."""
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, PermissionError, psutil.Error):
        return False


def _drain(process: "subprocess.Popen[Any]", seconds: float | None) -> None:
    """Wait for the end of a process and read its pipes: a full pipe would keep it from ending."""
    if process.stdin is not None and process.stdin.closed:
        process.stdin = None
    process.communicate(timeout=seconds)
