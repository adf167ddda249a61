"""Register a project: all of it or, on an error, nothing.

Everything is read once and compared in memory, so the cost is a few statements, not a few for
every dataset. Nothing is deleted: what vanished from the project is deprecated. The audit log has
each thing that changed.
"""

from hashlib import sha256

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import record_audits
from floe.catalog.changes import NewChange, record_change
from floe.catalog.projects.datasets import register_datasets
from floe.catalog.projects.processes import register_processes
from floe.catalog.projects.report import Report
from floe.catalog.projects.scope import Scope
from floe.catalog.rows import Difference, change_fields
from floe.catalog.search import index_datasets
from floe.catalog.tables import Project
from floe.spec import ProjectSpec

# Who did it, where nobody is named.
NOBODY = "floe"


def register_project(
    session: Session,
    spec: ProjectSpec,
    *,
    lake: str,
    actor: str | None = None,
) -> Report:
    """Make the catalog agree with a project. Done twice, the second time changes nothing."""
    report = Report()
    project, change = _put_project(session, spec)
    scope = Scope(session, spec, project, lake, actor, report)
    if change:
        scope.note("update" if change.before else "create", "project", spec.name, change)
    datasets = register_datasets(scope)
    register_processes(scope, datasets)
    record_audits(session, actor or NOBODY, scope.deeds)
    if not report.empty:
        session.flush()
        index_datasets(session, [row.dataset_id for row in datasets.values()])
        record_change(session, NewChange("PROJECT_REGISTERED", detail={"project": spec.name}))
    return report


def is_registered(session: Session, spec: ProjectSpec) -> bool:
    """Tell whether the catalog knows a project just as it is declared now."""
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
