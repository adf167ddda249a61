"""What can be wrong with a check before it is run."""

from floe.errors import FloeError


class WrongPartError(FloeError):
    """A part of a check cannot become SQL; whoever knows the check gives it its name."""


class UnusableCheckError(FloeError):
    """A check cannot be measured as it is written."""

    def __init__(self, label: str, reason: str) -> None:
        self.label = label
        super().__init__(f"The check '{label}' cannot be used: {reason}")
