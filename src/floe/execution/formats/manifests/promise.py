"""What a manifest promises, whichever kind it is."""

from dataclasses import dataclass


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
