"""What is said of a version after it was measured."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["PASS", "FAIL", "WARN"]
Measured = int | float | str | None
CONTRACT = "contract"
"""The label and the kind of the verdict on columns that are declared `nullable: false`."""


@dataclass(frozen=True)
class Verdict:
    """Whether a version met a check, and by how much it did not."""

    label: str
    kind: str
    status: Status
    failed_rows: int | None
    measured: Measured
    expected: str
    message: str


@dataclass(frozen=True)
class Finding:
    """What a measure shows, before it is known whether a failure rejects or only warns."""

    holds: bool
    measured: Measured
    expected: str
    message: str
    failed_rows: int | None = None


def plural(count: int, noun: str = "row") -> str:
    """Return a number with its noun: 1 row, 1,200 rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
