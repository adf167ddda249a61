"""What people are told."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True)
class Message:
    """Something that people should know."""

    title: str
    body: str = ""
    severity: Severity = "warning"
    links: Mapping[str, str] = field(default_factory=dict)
    """Addresses that lead on, by what they show."""

    @property
    def headline(self) -> str:
        """Return the title on one line, fit for a header."""
        return " ".join(self.title.split())

    @property
    def text(self) -> str:
        """Return what stands below the title: the body, then the links."""
        links = "\n".join(f"{label}: {url}" for label, url in self.links.items())
        return "\n\n".join(part for part in (self.body.strip(), links) if part)
