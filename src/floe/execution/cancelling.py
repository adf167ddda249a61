"""End work that is under way, from another thread: by a timeout or because somebody asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from floe.errors import FloeError


class CancelledError(FloeError):
    """A run was stopped before its end."""

    exit_code = 130

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class RunTimeoutError(FloeError):
    """An attempt took longer than its process allows."""

    def __init__(self, process: str, timeout: timedelta) -> None:
        super().__init__(
            f"'{process}' was stopped after {timeout}, its timeout. "
            "Give it more time in floe.yaml, or find out what it waits for."
        )


class Cancellation:
    """What has to be done to end the work under way. Once cancelled, all that follows ends too."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._actions: list[Callable[[], None]] = []
        self._error: FloeError | None = None
        self._event = threading.Event()

    def on_cancel(self, action: Callable[[], None]) -> None:
        """Have this done when the work is to end; at once if that has happened already."""
        with self._lock:
            self._actions.append(action)
            late = self._error is not None
        if late:
            action()

    def cancel(self, error: FloeError) -> None:
        """End the work, for this reason."""
        with self._lock:
            if self._error is not None:
                return
            self._error = error
            actions = list(self._actions)
        self._event.set()
        for action in actions:
            action()

    def child(self) -> "Cancellation":
        """Return one that ends with this one, and can end alone."""
        child = Cancellation()
        self.on_cancel(lambda: child.cancel(self._error or CancelledError("It was stopped.")))
        return child

    @property
    def error(self) -> FloeError | None:
        return self._error

    def check(self) -> None:
        """Raise if the work is to end."""
        if self._error is not None:
            raise self._error

    def wait(self, seconds: float) -> None:
        """Wait, but not past a cancellation."""
        self._event.wait(seconds)
        self.check()

    @contextmanager
    def limited(self, process: str, timeout: timedelta | None) -> Iterator[None]:
        """Cancel when a time is over."""
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
