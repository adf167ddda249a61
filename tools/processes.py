"""Processes that tests, benchmarks and demos start: each is ended before its starter goes on."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

GRACE_SECONDS = 30.0


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


def _drain(process: "subprocess.Popen[Any]", seconds: float | None) -> None:
    """Wait for the end of a process and read its pipes: a full pipe would keep it from ending."""
    if process.stdin is not None and process.stdin.closed:
        process.stdin = None
    process.communicate(timeout=seconds)
