"""Start and stop processes for tests and benchmarks; none outlives its caller."""

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
    """Run a command in its own session, and stop it when the block ends."""
    process = start(command, **options)
    try:
        yield process
    finally:
        end(process)


def start(command: Sequence[str | Path], **options: Any) -> "subprocess.Popen[Any]":
    """Start a command in its own session, so that it can be killed with its children."""
    return subprocess.Popen(command, start_new_session=True, **options)


def end(
    process: "subprocess.Popen[Any]",
    signum: signal.Signals = signal.SIGTERM,
    grace: float = GRACE_SECONDS,
) -> None:
    """Ask a process to stop and wait for it; kill it and its children after the grace period.

    Some servers do not stop on SIGTERM while the machine is busy. A test that waited without a
    limit would hang until its own timeout.
    """
    process.send_signal(signum)
    try:
        _drain(process, grace)
    except subprocess.TimeoutExpired:
        kill(process)


def kill(process: "subprocess.Popen[Any]") -> None:
    """Kill a process and its children, and wait until they are gone."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    _drain(process, None)
    while _is_group_running(process.pid):
        time.sleep(POLL_SECONDS)


def _is_group_running(group: int) -> bool:
    """Tell whether a process of a group still runs: after SIGKILL, the kernel needs some time."""
    return any(_belongs(process, group) for process in psutil.process_iter())


def _belongs(process: psutil.Process, group: int) -> bool:
    """Tell whether a process is in a group and has not ended."""
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (ProcessLookupError, PermissionError, psutil.Error):
        return False


def _drain(process: "subprocess.Popen[Any]", seconds: float | None) -> None:
    """Wait for a process and read its pipes: a full pipe would keep it from ending."""
    if process.stdin is not None and process.stdin.closed:
        process.stdin = None
    process.communicate(timeout=seconds)
