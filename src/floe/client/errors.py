"""Errors in a report that the caller has to correct."""

from collections.abc import Iterable

from floe.errors import FloeError


class BadReportError(FloeError):
    """A report is invalid. Sending it again cannot help; the job has to change it."""


class UnknownStatusError(BadReportError):
    """A report has an unknown status."""

    def __init__(self, status: str, allowed: Iterable[str]) -> None:
        super().__init__(f"Unknown status '{status}'. Use one of: {', '.join(allowed)}.")


class BadNameError(BadReportError):
    """The name of a dataset or process is invalid."""

    def __init__(self, kind: str, name: str, reason: str, example: str) -> None:
        super().__init__(f"Invalid {kind} name '{name}': {reason}. Expected {example}.")


class BadDetailError(BadReportError):
    """A detail of a report has an invalid value."""

    def __init__(self, detail: str, value: object, expected: str) -> None:
        super().__init__(f"{detail} must be {expected}; got {value!r}.")
