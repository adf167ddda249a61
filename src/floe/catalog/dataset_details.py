"""All details of one dataset: columns, versions, writers, readers and its last successful run."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import bindparam, func, select, union_all
from sqlalchemy.orm import Session

from floe.catalog.errors import DatasetNotFoundError
from floe.catalog.queries import TypedQuery
from floe.catalog.runs import RunRow, find_last_success
from floe.catalog.schemas import Column, describe_columns
from floe.catalog.slas import describe_sla
from floe.catalog.tables import Dataset, DatasetTag, LineageEdge, Process, SchemaSighting
from floe.catalog.version_queries import VersionRow, page_versions

VERSIONS_SHOWN = 5


class ProcessRef(Struct):
    """A process that reads or writes a dataset."""

    process_id: int
    process_key: str
    name: str | None
    team: str | None


class DatasetDetail(Struct):
    """A dataset with its columns, newest versions, and the processes that write and read it."""

    dataset_id: int
    namespace: str
    name: str
    full_name: str
    description: str | None
    category: str | None
    default_format: str | None
    owner_team: str | None
    owner_email: str | None
    status: str
    timezone: str | None
    needs_validation: bool
    curated: bool
    schema_hash: str | None
    """Of the declared schema, or of the newest one that was observed."""
    declaration_json: Any
    created_by: str | None
    created_at: datetime
    updated_at: datetime | None
    default_sla_id: int | None
    tags: Sequence[str] = ()
    sla: str | None = None
    columns: Sequence[Column] = ()
    versions: Sequence[VersionRow] = ()
    producers: Sequence[ProcessRef] = ()
    consumers: Sequence[ProcessRef] = ()
    last_successful_run: RunRow | None = None
    """The newest run that succeeded and wrote a version of the dataset."""


def describe_dataset(session: Session, dataset_id: int) -> DatasetDetail:
    """Return a dataset with everything that belongs to it."""
    dataset = _DETAIL.fetch_one(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFoundError(str(dataset_id))
    dataset.tags = [row.tag for row in _TAGS.fetch(session, dataset_id=dataset_id)]
    dataset.sla = describe_sla(session, dataset.default_sla_id)
    dataset.columns = describe_columns(session, dataset.schema_hash)
    dataset.versions = page_versions(session, dataset_id, VERSIONS_SHOWN)
    neighbours = _NEIGHBOURS.fetch(session, dataset_id=dataset_id)
    dataset.producers = _processes(neighbours, "PRODUCES")
    dataset.consumers = _processes(neighbours, "CONSUMES")
    dataset.last_successful_run = find_last_success(session, dataset_id)
    return dataset


class _Tag(Struct):
    tag: str


class _Neighbour(Struct):
    edge_role: str
    process_id: int
    process_key: str
    name: str | None
    team: str | None


def _processes(neighbours: Sequence[_Neighbour], role: str) -> list[ProcessRef]:
    # A declared and an observed edge may lead to the same process.
    by_key = {
        near.process_key: ProcessRef(near.process_id, near.process_key, near.name, near.team)
        for near in neighbours
        if near.edge_role == role
    }
    return [by_key[key] for key in sorted(by_key)]


_OF, _EDGE, _PROCESS = Dataset.__table__.c, LineageEdge.__table__.c, Process.__table__.c
_DATASET_ID = bindparam("dataset_id", type_=_OF.dataset_id.type)

_NEWEST_SCHEMA = (
    select(SchemaSighting.schema_hash)
    .where(SchemaSighting.dataset_id == _OF.dataset_id)
    .order_by(SchemaSighting.last_seen.desc(), SchemaSighting.schema_hash)
    .limit(1)
    .scalar_subquery()
)

_FIELDS = DatasetDetail.__struct_fields__
_DETAIL = TypedQuery(
    DatasetDetail,
    select(
        *(
            func.coalesce(_OF.schema_hash, _NEWEST_SCHEMA).label(name)
            if name == "schema_hash"
            else _OF[name]
            for name in _FIELDS[: _FIELDS.index("tags")]
        )
    ).where(_OF.dataset_id == _DATASET_ID),
)

_TAGS = TypedQuery(
    _Tag,
    select(DatasetTag.tag).where(DatasetTag.dataset_id == _DATASET_ID).order_by(DatasetTag.tag),
)

_NEIGHBOURS = TypedQuery(
    _Neighbour,
    union_all(
        *(
            select(
                _EDGE.edge_role,
                _PROCESS.process_id,
                _PROCESS.process_key,
                _PROCESS.name,
                _PROCESS.team,
            )
            .join(Process.__table__, _PROCESS.process_id == _EDGE[f"{far}_id"])
            .where(
                _EDGE[f"{near}_type"] == "DATASET",
                _EDGE[f"{near}_id"] == _DATASET_ID,
                _EDGE.edge_role == role,
                _EDGE.ended_at.is_(None),
            )
            for near, far, role in (
                ("target", "source", "PRODUCES"),
                ("source", "target", "CONSUMES"),
            )
        )
    ),
)
