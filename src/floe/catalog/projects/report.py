"""What registering a project changed, line by line."""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReportLine:
    """One thing that changed: `updated dataset credit.exposure (category, owner_team)`."""

    action: str
    kind: str
    name: str
    detail: str = ""

    def __str__(self) -> str:
        if self.kind == "edges":
            return f"{self.action} {self.name} edge{'' if self.name == '1' else 's'}"
        detail = f" ({self.detail})" if self.detail else ""
        return f"{self.action} {self.kind} {self.name}{detail}"


@dataclass
class Report:
    """All that changed. Empty when the catalog agreed already."""

    lines: list[ReportLine] = field(default_factory=list)

    def add(self, action: str, kind: str, name: str, details: Iterable[str] = ()) -> None:
        self.lines.append(ReportLine(action, kind, name, ", ".join(details)))

    @property
    def empty(self) -> bool:
        return not self.lines
