"""Say in one sentence why work failed that is not floe's own: a query, a function, a command."""

import re
from pathlib import Path
from traceback import extract_tb

from floe.errors import FloeError
from floe.execution.spark.faults import is_lost

# Spark puts what happened inside its JVM behind what it has to say.
JVM = "JVM stacktrace:"
LONGEST = 1_000
_PLAN = re.compile(r"^[ :]*\+- ", re.MULTILINE)


class ProcessFailedError(FloeError):
    """The work of a process failed."""

    def __init__(self, process: str, reason: str, log: Path) -> None:
        super().__init__(f"'{process}' failed: {reason.rstrip('.')}. Its log: {log}")


def reason_of(error: BaseException) -> str:
    """Return what an error says, and where in the user's code it was raised."""
    if isinstance(error, FloeError):
        return str(error)
    kind = type(error)
    said = _without_plan(str(error).partition(JVM)[0].strip())[:LONGEST]
    if kind.__module__.startswith(("pyspark.", "grpc")):
        # gRPC tells its whole state, and what happened stands in one line of it.
        told = re.search(r'details = "(.+)"', said)
        said = told[1] if told else said or kind.__name__
        return f"Spark does not answer: {said}" if is_lost(error) else said
    where = _where(error)
    return f"{kind.__name__}: {said}{f' ({where})' if where else ''}"


def _without_plan(message: str) -> str:
    """Cut off the query plan that Spark's analyzer appends: it hides what is wrong."""
    first, _, rest = message.partition("\n")
    return first.rstrip("; ") if _PLAN.search(rest) else message


def _where(error: BaseException) -> str:
    """The line of the user's own code that was reached last."""
    lines = [
        f"{frame.filename}:{frame.lineno}"
        for frame in extract_tb(error.__traceback__)
        if "site-packages" not in frame.filename and "/floe/" not in frame.filename
    ]
    return lines[-1] if lines else ""
