"""What a caller can do wrong, in words that name what would be right."""

from collections.abc import Iterable

from floe.errors import FloeError


class BadReportError(FloeError):
    """A report cannot be sent as it is. Only the job that makes it can put it right."""


class UnknownStatusError(BadReportError):
    """A status was named that floe does not know."""

    def __init__(self, status: str, allowed: Iterable[str]) -> None:
        super().__init__(f"'{status}' is not a status here. Use one of: {', '.join(allowed)}.")


class BadNameError(BadReportError):
    """A dataset or a process is named in a way that nobody could find it by."""

    def __init__(self, kind: str, name: str, reason: str, example: str) -> None:
        super().__init__(f"The {kind} name '{name}' {reason}. Write it as {example}.")


class BadDetailError(BadReportError):
    """A detail of a report has the wrong kind of value."""

    def __init__(self, detail: str, value: object, expected: str) -> None:
        super().__init__(f"{detail} is {value!r}; it must be {expected}.")
