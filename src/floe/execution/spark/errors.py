"""Spark errors: floe's own error classes, retry decisions, and readable reasons.

Does not import pyspark: errors are recognised by their class names.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from floe.errors import FloeError


class SparkUnavailableError(FloeError):
    """No Spark server is available."""


class SparkNotStartedError(SparkUnavailableError):
    """The server's JVM exited during its start, or was not ready in time."""

    def __init__(self, problem: str, lines: Sequence[str], log: Path) -> None:
        output = "".join(f"\n  {line}" for line in lines) or "\n  (no output)"
        super().__init__(
            f"The Spark server {problem}. Its output:{output}\n"
            f"Full log: {log}. Check compute and lake in platform.yaml."
        )


class PortTakenError(SparkNotStartedError):
    """Another process took the server's port before the server could."""


class SparkLostError(SparkUnavailableError):
    """A server does not answer."""

    def __init__(self, address: str, reason: str, *, ours: bool) -> None:
        hint = "See the log with: floe spark logs" if ours else "Check compute in platform.yaml"
        super().__init__(f"Spark at {address} does not answer: {reason}. {hint}")


class SparkRefusedError(FloeError):
    """A server rejects floe's token."""

    def __init__(self, address: str, reason: str, *, ours: bool) -> None:
        hint = "Run: floe spark stop" if ours else "Check compute.token in platform.yaml"
        super().__init__(f"Spark at {address} rejected the connection: {reason}. {hint}")


class NoOwnServerError(FloeError):
    """A command needs a server that floe manages, but compute.url names another."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"floe does not manage the Spark server at {address}, so it cannot start, stop or log "
            "it. To let floe run its own server, remove compute.url from platform.yaml."
        )


class LogMissingError(FloeError):
    """The log does not exist, because no server was ever started."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"{log} does not exist yet. Start a server with: floe spark start")


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
# A conflict with another writer, or a timeout.
TRANSIENT = (
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
# A refusal during work means that another server listens on the port now.
LOST_CODES = {"UNAVAILABLE", REFUSED}
TRANSIENT_CODES = LOST_CODES | {"DEADLINE_EXCEEDED", "ABORTED", "RESOURCE_EXHAUSTED"}
PERMANENT = {"AnalysisException", "ParseException", "PythonException"}


def is_lost(error: BaseException) -> bool:
    """Tell whether the session or its server is lost, so a new session is needed."""
    if isinstance(error, FloeError):
        return isinstance(error, SparkUnavailableError)
    return any(_is_lost(link) for link in _chain(error))


def is_transient(error: BaseException) -> bool:
    """Tell whether the same work may succeed on retry."""
    if is_lost(error):
        return True
    if isinstance(error, FloeError):
        return False
    return any(_is_transient(link) for link in _chain(error))


def is_refused(error: BaseException) -> bool:
    """Tell whether a server rejected the token."""
    return any(_of_spark(link) and _code(link) == REFUSED for link in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _is_lost(error: BaseException) -> bool:
    if not _of_spark(error) or _is_mistake(error):
        return False
    return _code(error) in LOST_CODES or _says(error, LOST)


def _is_transient(error: BaseException) -> bool:
    if not _of_spark(error):
        return isinstance(error, TimeoutError | ConnectionError)
    return not _is_mistake(error) and (_code(error) in TRANSIENT_CODES or _says(error, TRANSIENT))


def _is_mistake(error: BaseException) -> bool:
    """Tell whether the user's code is wrong: permanent, whatever the message says."""
    return bool({kind.__name__ for kind in type(error).__mro__} & PERMANENT)


def _of_spark(error: BaseException) -> bool:
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    return bool(modules & {"pyspark", "grpc"})


def _says(error: BaseException, words: tuple[str, ...]) -> bool:
    text = str(error)
    return any(word in text for word in words)


def _code(error: BaseException) -> str | None:
    """Return the gRPC status code of an error from grpc or pyspark."""
    get_code = getattr(error, "getGrpcStatusCode", None) or getattr(error, "code", None)
    return getattr(get_code(), "name", None) if callable(get_code) else None


# Spark appends the JVM's stack trace to its message.
JVM = "JVM stacktrace:"
MAX_REASON = 500
# Spark puts its condition before a message and the SQLSTATE after it; Java puts the class before.
_CONDITION = re.compile(r"^\s*\[[A-Z0-9_.]+\]\s*")
_CLASS = re.compile(r"^\s*\(?(?:[a-z_$][\w$]*\.)+[A-Z]\w*(?:\$\w+)?\)?:?\s*")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*$", re.DOTALL)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+(?:: (.+))?$", re.MULTILINE)
_FILE = re.compile(r"reading file (file:\S+?)\.?(?:\s|$)")
_SQLITE = re.compile(r"SQL error or missing database \((.+)\)")
_URL = re.compile(r"file:/+(\S*/)?")
_NAMELESS = {
    "EOFException": "the file ends too early",
    "NullPointerException": "it is damaged",
}


def spark_reason(error: BaseException) -> str:
    """Return the sentence of a Spark error that says what happened."""
    text = str(error)
    if file := _FILE.search(text):
        # The innermost cause says what is wrong with the file.
        name = PurePosixPath(file[1]).name
        cause = _root_cause(text)
        return f"{name} cannot be read: {cause}" if cause else f"{name} cannot be read"
    message = _plain(text.partition(JVM)[0])
    if message.startswith("Job aborted"):
        message = _root_cause(text) or message
    return message or type(error).__name__


def _root_cause(text: str) -> str:
    causes = [_plain(cause) for cause in _CAUSE.findall(text)]
    messages = [cause for cause in causes if cause and not cause.startswith("Exception thrown in")]
    if not messages:
        return next((words for name, words in _NAMELESS.items() if name in text), "")
    return messages[-1]


def _plain(text: str) -> str:
    """Return the first non-empty line without conditions, class names and file URLs."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    line = _SQLSTATE.sub("", line)
    before = None
    while before != line:
        before, line = line, _CLASS.sub("", _CONDITION.sub("", line))
    line = _SQLITE.sub(r"\1", line)
    return _URL.sub("", line).strip()[:MAX_REASON].rstrip(". ")
