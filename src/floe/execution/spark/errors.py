"""What can go wrong with Spark itself, in words that say what to do next."""

from collections.abc import Sequence
from pathlib import Path

from floe.errors import FloeError


class SparkUnavailableError(FloeError):
    """There is no Spark to talk to."""


class SparkNotStartedError(SparkUnavailableError):
    """The server's JVM ended, or was not ready in time, when it was started."""

    def __init__(self, happened: str, lines: Sequence[str], log: Path) -> None:
        said = "".join(f"\n  {line}" for line in lines) or "\n  It said nothing."
        super().__init__(
            f"The Spark server {happened}. It said:{said}\n"
            f"The whole log is in {log}. Settings come from compute and lake in platform.yaml."
        )


class PortTakenError(SparkNotStartedError):
    """Somebody else took the server's port between its choice and its use."""


class SparkLostError(SparkUnavailableError):
    """A server does not answer."""

    def __init__(self, address: str, reason: str, *, ours: bool) -> None:
        todo = "Look at: floe spark logs" if ours else "Check compute in platform.yaml"
        super().__init__(f"Spark at {address} does not answer: {reason}. {todo}")


class SparkRefusedError(FloeError):
    """A server answers, but does not take us."""

    def __init__(self, address: str, reason: str, *, ours: bool) -> None:
        todo = "Run: floe spark stop" if ours else "Check compute.token in platform.yaml"
        super().__init__(f"Spark at {address} refuses floe: {reason}. {todo}")


class NoOwnServerError(FloeError):
    """Somebody wants to start or stop a server that is not floe's."""

    def __init__(self, address: str) -> None:
        super().__init__(
            f"The platform's Spark is at {address}: it is not floe's to start, stop or log. "
            "Leave out compute.url in platform.yaml for a server of floe's own."
        )


class LogMissingError(FloeError):
    """There is no log, because no server was ever started."""

    def __init__(self, log: Path) -> None:
        super().__init__(f"There is no {log} yet. Start a server with: floe spark start")
