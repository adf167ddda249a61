"""Patches for pyspark 4.1: shorter retries, no duplicate log lines, fast exit."""

import atexit
import logging
from collections.abc import Callable
from typing import Any

from pyspark.logger import PySparkLogger
from pyspark.sql.connect.client.reattach import ExecutePlanResponseReattachableIterator
from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState
from pyspark.sql.connect.session import SparkSession

# They print every failed query to the terminal as JSON; floe reports failures itself.
NOISY_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


def silence_pyspark() -> None:
    """Silence duplicate log lines, and keep the threads that all sessions share."""
    for name in NOISY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # Closing one session would stop the threads of all sessions while holding a lock that those
    # threads may need: parallel runs in one process would deadlock.
    iterator: Any = ExecutePlanResponseReattachableIterator
    iterator.shutdown = classmethod(lambda cls: None)


def skip_exit_cleanup(session: SparkSession) -> None:
    """Skip pyspark's cleanup at exit, so a process never waits for a server to exit.

    pyspark keeps every client in memory to clear a model cache at exit. The server clears that
    cache with the session anyway.
    """
    atexit.unregister(session.client._cleanup_ml_cache)


class _State(RetryPolicyState):
    """Gives up without pyspark's extra warning, which repeats the error."""

    def can_retry(self, exception: BaseException) -> bool:
        most = self.policy.max_retries
        return (most is None or self._attempt < most) and super().can_retry(exception)

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Return the delay before the next attempt; 0 if the server's process is dead."""
        milliseconds: int | None = super().next_attempt(exception)
        gone = isinstance(self.policy, ShortPolicy) and self.policy.is_gone()
        return 0 if milliseconds and gone else milliseconds


class ShortPolicy(DefaultPolicy):
    """Gives up about 8 seconds after a server is lost, at once if its process died."""

    def __init__(self, is_gone: Callable[[], bool] = lambda: False) -> None:
        super().__init__(max_retries=5, initial_backoff=200, max_backoff=2000)
        self.is_gone = is_gone

    def to_state(self) -> RetryPolicyState:
        return _State(self)
