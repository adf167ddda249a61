"""What is wrong with a declaration, where it stands, and what to do about it."""

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
    """Whether the key itself is wrong (its line is shown) rather than its value."""
    meant: str = ""
    """The key that was probably meant by an unknown one: that it is missing needs no saying."""
    also: tuple[KeyPath, ...] = ()
    """Other places that the verdict rests on: when one of them is not known yet, there is none."""


@dataclass(frozen=True)
class Finding:
    """A mistake as the user sees it: `file:line: key.path: what is wrong. What to do.`"""

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
    """A project or platform file holds mistakes; all of them are listed at once."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self.findings = sort_findings(findings)
        super().__init__("\n".join(str(finding) for finding in self.findings))


def sort_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Order findings as one reads the files; the same finding twice is shown once."""
    unique = dict.fromkeys(findings)
    return tuple(sorted(unique, key=lambda f: (f.file, f.line, f.key, f.message)))


def key_text(path: KeyPath) -> str:
    """Write a path as people do: `processes.credit.exposure.steps[1].sql`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")
