"""Whose declarations are registered: what every part of the registering needs to know."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from floe.catalog.projects.report import Report
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

    def full_name(self, dataset: str) -> str:
        return DatasetId(self.lake, dataset).full_name

    def process_key(self, process: str) -> str:
        return floe_process(self.project.name, process).key
