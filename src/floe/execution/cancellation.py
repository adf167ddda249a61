"""Cancel running work from another thread: on a timeout, a signal or a request."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import FrameType

from floe.errors import FloeError


class CancelledError(FloeError):
    """A run was stopped before it finished."""

    exit_code = 130

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class RunTimeoutError(FloeError):
    """An attempt took longer than its process allows."""

    def __init__(self, process: str, timeout: timedelta) -> None:
        super().__init__(
            f"'{process}' was stopped after its timeout of {timeout}. "
            "Increase the timeout in floe.yaml, or find out what the process waits for."
        )


class Cancellation:
    """A switch that stops running work, and everything checked against it afterwards."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._error: FloeError | None = None
        self._event = threading.Event()

    def on_cancel(self, action: Callable[[], None]) -> None:
        """Run an action on cancellation; immediately if already cancelled."""
        with self._lock:
            self._actions.append(action)
            late = self._error is not None
        if late:
            action()

    def cancel(self, error: FloeError) -> None:
        """Cancel the work; `error` is the reason."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            actions = list(self._actions)
        self._event.set()
        for action in actions:
            action()

    def child(self) -> "Cancellation":
        """Return a cancellation that follows this one, and can also be cancelled alone."""
        child = Cancellation()
        self.on_cancel(lambda: child.cancel(self._error or CancelledError("The run was stopped.")))
        return child

    @property
    def error(self) -> FloeError | None:
        return self._error

    def check(self) -> None:
        """Raise the reason if cancelled."""
        if self._error is not None:
            raise self._error

    def wait(self, seconds: float) -> None:
        """Sleep, but return early and raise on cancellation."""
        self._event.wait(seconds)
        self.check()

    @contextmanager
    def limited(self, process: str, timeout: timedelta | None) -> Iterator[None]:
        """Cancel if the block takes longer than `timeout`."""
        if timeout is None:
            yield
            return
        error = RunTimeoutError(process, timeout)
        timer = threading.Timer(timeout.total_seconds(), self.cancel, [error])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def stopped_by_signals(cancellation: Cancellation) -> Iterator[None]:
    """Cancel on SIGINT and SIGTERM. A second signal has its usual effect.

    Does nothing outside the main thread, because Python delivers signals only there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(signal_number: int, frame: FrameType | None) -> None:
        signal.signal(signal_number, before[signal_number])
        cancellation.cancel(CancelledError("The run was stopped by the user."))

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {int(signal_number): signal.signal(signal_number, stop) for signal_number in numbers}
    try:
        yield
    finally:
        for signal_number, handler in before.items():
            signal.signal(signal_number, handler)
