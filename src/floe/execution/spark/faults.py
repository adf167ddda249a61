"""Which errors of Spark pass when tried again, and which stay. Needs no pyspark to tell."""

from collections.abc import Iterator

from floe.errors import FloeError
from floe.execution.spark.errors import SparkUnavailableError

# The session or the server is gone; a new session is needed.
LOST = (
    "NO_ACTIVE_SESSION",
    "SESSION_NOT_FOUND",
    "SESSION_CLOSED",
    "SESSION_CHANGED",
    "SESSION_NOT_SAME",
    "INVALID_HANDLE.OPERATION_ABANDONED",
    "INVALID_HANDLE.OPERATION_NOT_FOUND",
    "INVALID_HANDLE.SESSION",
    "SparkContext was shut down",
    "stopped SparkContext",
    "Cannot invoke RPC on closed channel",
)
# Somebody else was faster, or something took too long.
PASSING = (
    "CommitFailedException",
    "CommitStateUnknownException",
    "ValidationException: Found conflicting",
    "Found new conflicting",
    "not an ancestor",
    "SQLITE_BUSY",
    "Cannot check and eventually update SQL schema",
    "database is locked",
    "SocketTimeoutException",
    "TimeoutException",
    "Connection refused",
    "Connection reset",
    "Lost executor",
    "ExecutorLostFailure",
)
REFUSED = "UNAUTHENTICATED"
# Refused in the midst of work, it is another server that listens there now.
LOST_CODES = {"UNAVAILABLE", REFUSED}
PASSING_CODES = LOST_CODES | {"DEADLINE_EXCEEDED", "ABORTED", "RESOURCE_EXHAUSTED"}
PERMANENT = {"AnalysisException", "ParseException", "PythonException"}


def is_lost(error: BaseException) -> bool:
    """Tell whether the session or its server is gone, so that only a new session helps."""
    if isinstance(error, FloeError):
        return isinstance(error, SparkUnavailableError)
    return any(_is_lost(one) for one in _chain(error))


def is_passing(error: BaseException) -> bool:
    """Tell whether the same work may well succeed when it is tried again."""
    if is_lost(error):
        return True
    if isinstance(error, FloeError):
        return False
    return any(_is_passing(one) for one in _chain(error))


def is_refused(error: BaseException) -> bool:
    """Tell whether a server did not accept the token."""
    return any(_of_spark(one) and _code(one) == REFUSED for one in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _is_lost(error: BaseException) -> bool:
    if not _of_spark(error) or _is_mistake(error):
        return False
    return _code(error) in LOST_CODES or _says(error, LOST)


def _is_passing(error: BaseException) -> bool:
    if not _of_spark(error):
        return isinstance(error, TimeoutError | ConnectionError)
    return not _is_mistake(error) and (_code(error) in PASSING_CODES or _says(error, PASSING))


def _is_mistake(error: BaseException) -> bool:
    """Tell whether it is the user's: whatever words stand in it, it stays."""
    return bool({kind.__name__ for kind in type(error).__mro__} & PERMANENT)


def _of_spark(error: BaseException) -> bool:
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"pyspark", "grpc"})


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    text = str(error)
    return any(word in text for word in words)


def _code(error: BaseException) -> str | None:
    """Return gRPC's own word for what went wrong, from the call or from pyspark's wrapping."""
    asked = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(asked(), "name", None) if callable(asked) else None
