"""Signals: stop the demo in order, and do not interrupt the stopping itself."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let SIGTERM and a closed terminal stop the demo like Ctrl-C."""

    def interrupt(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {signum: signal.signal(signum, interrupt) for signum in SIGNALS}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay interrupts until the block has ended."""
    received: list[int] = []
    before = {
        signum: signal.signal(signum, lambda signum, _: received.append(signum))
        for signum in SIGNALS
    }
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
    if received:
        raise KeyboardInterrupt
