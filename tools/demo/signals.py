"""Signals: whatever asks the demo to end does so in good order, and not in the middle of that."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interrupted_by_signals() -> Iterator[None]:
    """Let a closed terminal and a kill end the demo as Ctrl-C does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {one: signal.signal(one, interrupt) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish something first. An interrupt that came meanwhile comes after it."""
    came: list[int] = []
    before = {one: signal.signal(one, lambda number, _: came.append(number)) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    if came:
        raise KeyboardInterrupt
