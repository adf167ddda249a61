"""When to try again, and after how long. Pure."""

from datetime import timedelta

from floe.errors import FloeError
from floe.execution.cancelling import RunTimeoutError
from floe.spec.processes import Retry


def is_worth_retrying(error: BaseException) -> bool:
    """Tell whether the same work may well succeed the next time: bad SQL never does."""
    from floe.execution.spark.errors import SparkUnavailableError
    from floe.execution.spark.faults import is_passing

    if isinstance(error, RunTimeoutError | SparkUnavailableError):
        return True
    if isinstance(error, FloeError):
        return getattr(error, "passing", False)
    return isinstance(error, Exception) and is_passing(error)


def delay_before(retry: Retry, attempt: int) -> timedelta:
    """Return how long to wait before an attempt, the second one being number 2."""
    times = {"fixed": 1, "linear": attempt - 1, "exponential": 2 ** (attempt - 2)}
    return min(retry.delay * int(times[retry.backoff]), retry.max_delay)
