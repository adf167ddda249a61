"""Ctrl-C and SIGTERM end the work under way, which then cleans up behind itself."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from floe.execution.cancelling import Cancellation


@contextmanager
def stopped_by_signals(cancellation: "Cancellation") -> Iterator[None]:
    """Let signals cancel. A second one ends the process as it always does."""
    from floe.execution.cancelling import CancelledError

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(number, before[number])
        cancellation.cancel(CancelledError("It was stopped by the user."))

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {int(number): signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
