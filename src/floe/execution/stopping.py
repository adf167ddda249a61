"""Ctrl-C and SIGTERM end the work under way, which then cleans up behind itself."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from floe.execution.cancelling import Cancellation, CancelledError


@contextmanager
def stopped_by_signals(cancellation: Cancellation) -> Iterator[None]:
    """Let signals cancel. A second one ends the process as it always does.

    Only the main thread hears signals; work in another one is stopped by whoever started it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

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
