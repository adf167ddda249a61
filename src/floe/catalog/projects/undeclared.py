"""Datasets that code of a project makes and that floe.yaml does not declare."""

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe.catalog.datasets import ACTIVE, create_dataset, set_status
from floe.catalog.projects.declarations import dataset_fields
from floe.catalog.tables import Dataset, Project
from floe.spec import DatasetSpec, ProjectSpec
from floe.spec.identity import DatasetId


def note_undeclared(
    session: Session, project: ProjectSpec, name: str, spec: DatasetSpec, *, lake: str
) -> int:
    """Let the catalog know a dataset that a project makes; return its number.

    It belongs to the project and has no declaration, so registering the project leaves it alone.
    """
    full_name = DatasetId(lake, name).full_name
    row = session.scalar(select(Dataset).where(Dataset.full_name == full_name))
    if row is not None:
        set_status(session, row, ACTIVE)
        return row.dataset_id
    number = session.scalar(select(Project.project_id).where(Project.name == project.name))
    fields = dataset_fields(project, spec)
    fields["project_id"], fields["declaration_json"] = number, None
    return create_dataset(session, lake, name, **fields).dataset_id
