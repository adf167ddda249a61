"""What a manifest promises, whichever kind it is."""

import re
from dataclasses import dataclass

# No file has more rows or bytes than fit into 18 digits.
DIGITS = re.compile(r"[0-9]{1,18}")
LONGEST_SHOWN = 80


@dataclass(frozen=True)
class PromisedFile:
    """One file that was announced."""

    name: str
    rows: int | None = None
    size: int | None = None
    checksum: str | None = None
    algorithm: str | None = None


@dataclass(frozen=True)
class Promise:
    """All that a manifest announces. None: it does not say."""

    files: tuple[PromisedFile, ...] | None = None
    rows: int | None = None
    checksum: str | None = None
    algorithm: str | None = None

    @property
    def total_rows(self) -> int | None:
        """The rows of all files together."""
        if self.rows is not None or self.files is None:
            return self.rows
        counts = [file.rows for file in self.files]
        return sum(count for count in counts if count is not None) if None not in counts else None


class PromiseError(Exception):
    """A manifest cannot be understood. Whoever verifies says whose it is."""


def whole_number(value: object, what: str) -> int:
    """Read a count as manifests give it: a number, or its digits."""
    text = str(value).strip()
    if isinstance(value, bool | float) or not DIGITS.fullmatch(text):
        shown = text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
        raise PromiseError(f"'{shown}' is not a number of {what}")
    return int(text)


def shown_line(line: str) -> str:
    """Return a line as a reason can quote it."""
    return line if len(line) <= LONGEST_SHOWN else f"{line[:LONGEST_SHOWN]}…"
