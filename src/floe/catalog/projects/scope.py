"""Whose declarations are registered: what every part of the registering needs to know."""

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from floe.catalog.audit import LONGEST_KEY, Deed
from floe.catalog.projects.report import Report
from floe.catalog.rows import Difference
from floe.catalog.tables import Project
from floe.spec import ProjectSpec
from floe.spec.identity import DatasetId, floe_process


@dataclass(frozen=True)
class Scope:
    """A project, the lake its datasets live in, who registers it, and what came of it."""

    session: Session
    spec: ProjectSpec
    project: Project
    lake: str
    actor: str | None
    report: Report
    deeds: list[Deed] = field(default_factory=list)

    def full_name(self, dataset: str) -> str:
        return DatasetId(self.lake, dataset).full_name

    def note(self, action: str, kind: str, key: str, change: Difference) -> None:
        """Keep for the audit log what is done to a dataset, a process, a promise, the project."""
        deed = f"{kind}.{action}"
        self.deeds.append(
            Deed(deed, kind.upper(), key[:LONGEST_KEY], change.before or None, change.after)
        )

    def process_key(self, process: str) -> str:
        return floe_process(self.project.name, process).key
