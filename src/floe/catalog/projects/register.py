"""Register a project in one transaction.

The catalog is read once and compared in memory, so the cost is a few statements, not a few per
dataset. Nothing is deleted: what was removed from the project is deprecated. The audit log lists
every change.
"""

from collections.abc import Mapping
from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import Difference, change_fields, record_audits
from floe.catalog.changes import NewChange, record_change
from floe.catalog.projects.datasets import register_datasets
from floe.catalog.projects.processes import register_processes
from floe.catalog.projects.report import Report
from floe.catalog.projects.scope import Scope
from floe.catalog.search_index import index_datasets
from floe.catalog.tables import Project
from floe.spec import ProjectSpec

# The actor in the audit log if none is given.
DEFAULT_ACTOR = "floe"


def register_project(
    session: Session,
    spec: ProjectSpec,
    *,
    lake: str,
    actor: str | None = None,
    sql: Mapping[str, str] | None = None,
) -> Report:
    """Make the catalog match a project. Registering it again changes nothing.

    `sql` is the SQL of processes by name; it is stored with the edges to their outputs.
    """
    report = Report()
    project, change = _put_project(session, spec)
    scope = Scope(session, spec, project, lake, actor, report, sql or {})
    if change:
        scope.audit("update" if change.before else "create", "project", spec.name, change)
    datasets = register_datasets(scope)
    register_processes(scope, datasets)
    record_audits(session, actor or DEFAULT_ACTOR, scope.audit_records)
    if not report.empty:
        session.flush()
        index_datasets(session, [row.dataset_id for row in datasets.values()])
        record_change(session, NewChange("PROJECT_REGISTERED", detail={"project": spec.name}))
    return report


def is_registered(session: Session, spec: ProjectSpec) -> bool:
    """Tell whether the catalog has this version of a project."""
    known = session.scalar(select(Project.content_hash).where(Project.name == spec.name))
    return known == _content_hash(spec)


def _content_hash(spec: ProjectSpec) -> str:
    return sha256(spec.model_dump_json().encode()).hexdigest()


def _put_project(session: Session, spec: ProjectSpec) -> tuple[Project, Difference]:
    values = {
        "version": spec.version or None,
        "description": spec.description or None,
        "timezone": spec.timezone,
        "content_hash": _content_hash(spec),
    }
    project = session.scalar(select(Project).where(Project.name == spec.name))
    if project is None:
        project = Project(name=spec.name, created_at=clock.now(), **values)
        session.add(project)
        session.flush()
        return project, Difference(after=values)
    return project, change_fields(project, values)
