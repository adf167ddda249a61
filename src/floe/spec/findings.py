"""Findings: what is wrong with a declaration, where, and what to do about it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass

from floe.errors import FloeError

KeyPath = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """A mistake at a key of the merged tree, before its file and line are looked up."""

    path: KeyPath
    message: str
    hint: str = ""
    at_key: bool = False
    """Whether the key itself is wrong rather than its value; decides which line is shown."""
    meant: str = ""
    """The key that an unknown key probably means; it is then not also reported as missing."""
    also: tuple[KeyPath, ...] = ()
    """Other keys that the problem depends on; it is dropped if one of them is unknown."""


@dataclass(frozen=True)
class Finding:
    """A mistake as shown to users: `file:line: key: what is wrong. What to do.`"""

    file: str
    line: int
    key: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: "
        key = f"{self.key}: " if self.key else ""
        return f"{where}{key}{self.message}. {self.hint}".rstrip()

    def as_json(self) -> dict[str, str | int]:
        return asdict(self)


class SpecError(FloeError):
    """A project or platform file has errors; lists all of them at once."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sort_findings(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Sort findings by file and line, without duplicates."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda f: (f.file, f.line, f.key, f.message)))


def key_text(path: KeyPath) -> str:
    """Format a path as `processes.credit.exposure.steps[1].sql`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
