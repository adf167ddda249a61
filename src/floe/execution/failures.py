"""Failures: the reason in one sentence, whether to retry, and catalog outages."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from traceback import extract_tb
from typing import TypeVar

from floe import clock
from floe.catalog.database import OUTAGES
from floe.errors import FloeError
from floe.execution.cancellation import Cancellation, RunTimeoutError
from floe.execution.spark.errors import JVM, SparkUnavailableError, is_lost, is_transient
from floe.spec.processes import Retry

MAX_REASON = 1_000
_PLAN = re.compile(r"^[ :]*\+- ", re.MULTILINE)


class ProcessFailedError(FloeError):
    """The work of a process failed."""

    def __init__(self, process: str, reason: str, log: Path) -> None:
        super().__init__(f"'{process}' failed: {reason.rstrip('.')}. Log: {log}")


def reason_of(error: BaseException) -> str:
    """Return an error's message, with the line of user code that raised it."""
    if isinstance(error, FloeError):
        return str(error)
    kind = type(error)
    message = _without_plan(str(error).partition(JVM)[0].strip())[:MAX_REASON]
    if kind.__module__.startswith(("pyspark.", "grpc")):
        # A gRPC error prints its whole state; only `details` says what happened.
        details = re.search(r'details = "(.+)"', message)
        message = details[1] if details else message or kind.__name__
        return f"Spark does not answer: {message}" if is_lost(error) else message
    where = _where(error)
    return f"{kind.__name__}: {message}{f' ({where})' if where else ''}"


def _without_plan(message: str) -> str:
    """Cut off the query plan that Spark's analyzer appends: it hides the message."""
    first, _, rest = message.partition("\n")
    return first.rstrip("; ") if _PLAN.search(rest) else message


def _where(error: BaseException) -> str:
    """Return the innermost line of user code, as file:line."""
    lines = [
        f"{frame.filename}:{frame.lineno}"
        for frame in extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and "/floe/" not in frame.filename
    ]
    return lines[-1] if lines else ""


def is_worth_retrying(error: BaseException) -> bool:
    """Tell whether a retry may succeed: after a lost server yes, with bad SQL never."""
    if isinstance(error, RunTimeoutError | SparkUnavailableError):
        return True
    if isinstance(error, FloeError):
        return getattr(error, "passing", False)
    return isinstance(error, Exception) and is_transient(error)


def delay_before(retry: Retry, attempt: int) -> timedelta:
    """Return how long to wait before an attempt; the first retry is attempt 2."""
    times = {"fixed": 1, "linear": attempt - 1, "exponential": 2 ** (attempt - 2)}
    return min(retry.delay * int(times[retry.backoff]), retry.max_delay)


PATIENCE = timedelta(minutes=15)
PAUSE_SECONDS = 2.0

Result = TypeVar("Result")


class CatalogOutageError(FloeError):
    """A catalog outage lasted too long."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The catalog has not answered for {PATIENCE.seconds // 60} minutes: {reason}. "
            "Written data is kept. Once the catalog is back, run: floe run --resume RUN"
        )


def wait_out_outages(action: Callable[[], Result], cancellation: Cancellation) -> Result:
    """Run an action, and retry it during a catalog outage for up to 15 minutes."""
    until = clock.now() + PATIENCE
    while True:
        try:
            return action()
        except OUTAGES as error:
            if clock.now() >= until:
                raise CatalogOutageError(str(error.orig or error)) from error
            cancellation.wait(PAUSE_SECONDS)
