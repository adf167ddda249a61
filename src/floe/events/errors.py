"""Why an event is refused: every reason, by its place in the JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from floe.errors import FloeError


@dataclass(frozen=True)
class Reason:
    """One thing that is wrong, at a JSON path such as `$.run.runId`."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BadEventError(FloeError):
    """An event cannot be taken. The sender has to change it; sending it again will not help."""


class MalformedEventError(BadEventError):
    """The body is not JSON at all."""

    def __init__(self, detail: str) -> None:
        super().__init__(f"The body is not JSON: {detail}.")


class InvalidEventError(BadEventError):
    """The body is JSON and not an event."""

    def __init__(self, reasons: Sequence[Reason]) -> None:
        self.reasons = tuple(reasons)
        super().__init__("; ".join(map(str, reasons)))
