"""Datasets, their versions and schemas, and what happened to them."""

from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import (
    FullName,
    LongName,
    Moment,
    Name,
    Place,
    RowId,
    SchemaHash,
    Short,
    Table,
    index_of_some,
)
from floe.catalog.types import JsonText, RunUuid, YesNo


class Project(Table):
    """A floe.yaml: the owner of what it declares."""

    __tablename__ = "project"

    project_id: Mapped[RowId]
    name: Mapped[Name]
    version: Mapped[str | None] = mapped_column("version", String(50), quote=False)
    description: Mapped[str | None] = mapped_column(Text)
    timezone: Mapped[str] = mapped_column(String(60))
    content_hash: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[Moment]
    updated_at: Mapped[Moment | None]

    __table_args__ = (UniqueConstraint("name"),)


class Dataset(Table):
    """Named data that processes read and write."""

    __tablename__ = "dataset"

    dataset_id: Mapped[RowId]
    namespace: Mapped[Name]
    name: Mapped[LongName]
    full_name: Mapped[FullName]
    description: Mapped[str | None] = mapped_column(Text)
    category: Mapped[str | None] = mapped_column(String(100))
    default_format: Mapped[str | None] = mapped_column(String(50))
    owner_team: Mapped[Name | None]
    owner_email: Mapped[Name | None]
    default_sla_id: Mapped[int | None] = mapped_column(ForeignKey("sla.sla_id"))
    status: Mapped[Short]
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.project_id"))
    timezone: Mapped[str | None] = mapped_column(String(60))
    # A version from outside is READY at once unless a check or a manifest has to be seen first.
    needs_validation: Mapped[bool] = mapped_column(YesNo)
    # Somebody has said by hand what this dataset is: what events say of it shows no longer.
    curated: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")
    # floe writes the versions itself: what others announce is drift, not a version.
    floe_writes: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")
    schema_hash: Mapped[SchemaHash | None]  # the declared schema, else the newest one seen
    declaration_json: Mapped[Any | None] = mapped_column(JsonText)
    created_by: Mapped[str | None] = mapped_column(String(100))
    created_at: Mapped[Moment]
    updated_at: Mapped[Moment | None]

    __table_args__ = (
        Index("idx_dataset_fullname", "full_name", unique=True),
        Index("idx_dataset_name", "name"),
        index_of_some("idx_dataset_project", "project_id"),
    )


class DatasetTag(Table):
    """A word that users file a dataset under."""

    __tablename__ = "dataset_tag"

    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"), primary_key=True)
    tag: Mapped[str] = mapped_column(String(200), primary_key=True)

    __table_args__ = (Index("idx_dataset_tag", "tag"),)


class DatasetAlias(Table):
    """Another name or path by which clients know a dataset."""

    __tablename__ = "dataset_alias"

    namespace: Mapped[str] = mapped_column(String(200), primary_key=True)
    name: Mapped[str] = mapped_column(String(300), primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    created_at: Mapped[Moment]

    __table_args__ = (Index("idx_dataset_alias_dataset", "dataset_id"),)


class DatasetVersion(Table):
    """One immutable state of a dataset, for one business date or partition."""

    __tablename__ = "dataset_version"

    dataset_version_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    version_tag: Mapped[LongName]
    business_date: Mapped[date | None]
    partition_key: Mapped[LongName | None]
    seq: Mapped[int] = mapped_column(Integer)
    state: Mapped[Short]
    path: Mapped[Place | None] = mapped_column("path", quote=False)
    row_count: Mapped[int | None] = mapped_column(BigInteger)
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    checksum: Mapped[Name | None]
    schema_hash: Mapped[SchemaHash | None]
    produced_by_run_id: Mapped[str | None] = mapped_column(RunUuid)
    produced_at: Mapped[Moment]
    legal_hold: Mapped[bool] = mapped_column(YesNo)
    metadata_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        UniqueConstraint("dataset_id", "version_tag", name="unq_ds_ver"),
        Index("idx_version_produced", "dataset_id", "produced_at"),
        Index("idx_version_date", "dataset_id", "business_date", "state"),
        Index("idx_version_run", "produced_by_run_id"),
    )


class DatasetSchema(Table):
    """One column of one distinct schema. Versions with the same columns share the rows."""

    __tablename__ = "dataset_schema"

    schema_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    column_order: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    column_name: Mapped[Name]
    column_type: Mapped[Place]
    nullable: Mapped[bool] = mapped_column(YesNo)
    column_metadata: Mapped[Any | None] = mapped_column(JsonText)


class DatasetEvent(Table):
    """A moment in the life of a dataset or of a version: who did what, and when."""

    __tablename__ = "dataset_event"

    dataset_event_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )
    event_type: Mapped[str] = mapped_column(String(50))
    actor: Mapped[Name | None]
    occurred_at: Mapped[Moment]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (Index("idx_dataset_event", "dataset_id", "occurred_at"),)
