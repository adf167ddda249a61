"""What a vacuum removes or leaves, as people and scripts read it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Kind = Literal["version", "folder", "branch", "snapshot", "files", "file"]


@dataclass(frozen=True)
class Item:
    """Something that goes."""

    dataset: str
    kind: Kind
    name: str
    reason: str
    bytes: int | None = None
    """What this frees; None where another item counts it, or nobody knows."""


@dataclass(frozen=True)
class Kept:
    """Something that is past its retention and stays all the same."""

    dataset: str
    name: str
    reason: str


@dataclass(frozen=True)
class VacuumReport:
    """What a vacuum did, or would do."""

    dry_run: bool
    items: Sequence[Item] = ()
    kept: Sequence[Kept] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Datasets that are in use, each with by whom."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Datasets that could not be vacuumed, each with the reason."""

    @property
    def freed(self) -> int:
        return sum(item.bytes or 0 for item in self.items)

    def plain(self) -> dict[str, Any]:
        """Return it as JSON holds it."""
        return {
            "dry_run": self.dry_run,
            "items": [asdict(item) for item in self.items],
            "kept": [asdict(one) for one in self.kept],
            "skipped": dict(self.skipped),
            "failed": dict(self.failed),
            "bytes": self.freed,
        }
