"""Datasets, their versions, schemas, checks and SLAs."""

from datetime import date
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.table_base import (
    FullName,
    LongName,
    Name,
    RowId,
    SchemaHash,
    Short,
    StoragePath,
    Table,
    Timestamp,
    sparse_index,
)
from floe.catalog.tables.types import JsonText, RunUuid, YesNo


class Project(Table):
    """A project: one floe.yaml, which owns everything it declares."""

    __tablename__ = "project"

    project_id: Mapped[RowId]
    name: Mapped[Name]
    version: Mapped[str | None] = mapped_column("version", String(50), quote=False)
    description: Mapped[str | None] = mapped_column(Text)
    timezone: Mapped[str] = mapped_column(String(60))
    content_hash: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp | None]

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
    # A version from outside is READY at once unless a check or a manifest must be verified first.
    needs_validation: Mapped[bool] = mapped_column(YesNo)
    # A person has edited this dataset: values from events no longer overwrite it.
    curated: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")
    # floe writes the versions itself: a version announced by others is drift.
    floe_writes: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")
    schema_hash: Mapped[SchemaHash | None]  # the declared schema, else the newest one seen
    declaration_json: Mapped[Any | None] = mapped_column(JsonText)
    created_by: Mapped[str | None] = mapped_column(String(100))
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp | None]

    __table_args__ = (
        Index("idx_dataset_fullname", "full_name", unique=True),
        Index("idx_dataset_name", "name"),
        sparse_index("idx_dataset_project", "project_id"),
    )


class DatasetTag(Table):
    """A label that users give a dataset."""

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
    created_at: Mapped[Timestamp]

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
    path: Mapped[StoragePath | None] = mapped_column("path", quote=False)
    row_count: Mapped[int | None] = mapped_column(BigInteger)
    size_bytes: Mapped[int | None] = mapped_column(BigInteger)
    checksum: Mapped[Name | None]
    schema_hash: Mapped[SchemaHash | None]
    produced_by_run_id: Mapped[str | None] = mapped_column(RunUuid)
    produced_at: Mapped[Timestamp]
    legal_hold: Mapped[bool] = mapped_column(YesNo)
    metadata_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        UniqueConstraint("dataset_id", "version_tag", name="unq_ds_ver"),
        Index("idx_version_produced", "dataset_id", "produced_at"),
        Index("idx_version_date", "dataset_id", "business_date", "state"),
        Index("idx_version_run", "produced_by_run_id"),
    )


class DatasetSchema(Table):
    """One column of a schema. Versions with the same columns share the rows."""

    __tablename__ = "dataset_schema"

    schema_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    column_order: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    column_name: Mapped[Name]
    column_type: Mapped[StoragePath]
    nullable: Mapped[bool] = mapped_column(YesNo)
    column_metadata: Mapped[Any | None] = mapped_column(JsonText)


class DatasetEvent(Table):
    """Something that happened to a dataset or a version: who did what, and when."""

    __tablename__ = "dataset_event"

    dataset_event_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )
    event_type: Mapped[str] = mapped_column(String(50))
    actor: Mapped[Name | None]
    occurred_at: Mapped[Timestamp]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (Index("idx_dataset_event", "dataset_id", "occurred_at"),)


class Sla(Table):
    """An SLA: a due time, a maximum age, or a maximum run duration."""

    __tablename__ = "sla"

    sla_id: Mapped[RowId]
    # Named after its dataset or process, so as wide as the longest process key.
    name: Mapped[str] = mapped_column(String(650))
    description: Mapped[str | None] = mapped_column(Text)
    sla_window_sec: Mapped[int | None] = mapped_column(Integer)
    due: Mapped[str | None] = mapped_column(String(8))
    zone: Mapped[str | None] = mapped_column(String(60))
    calendar: Mapped[str | None] = mapped_column(String(100))
    day_offset: Mapped[int | None] = mapped_column(Integer)
    escalation_json: Mapped[Any | None] = mapped_column(JsonText)
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp | None]

    __table_args__ = (UniqueConstraint("name"),)


class QualityCheckDef(Table):
    """A rule on the versions of a dataset."""

    __tablename__ = "quality_check_def"

    qdef_id: Mapped[RowId]
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    name: Mapped[Name]
    kind: Mapped[str] = mapped_column(String(50))
    severity: Mapped[Short]
    sql_expression: Mapped[str | None] = mapped_column(Text)
    expected_result: Mapped[str | None] = mapped_column(Text)
    parameters_json: Mapped[Any | None] = mapped_column(JsonText)
    active: Mapped[bool] = mapped_column(YesNo)
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp | None]

    __table_args__ = (UniqueConstraint("dataset_id", "name"),)


class QualityCheckResult(Table):
    """The verdict of one check on one version."""

    __tablename__ = "quality_check_result"

    qres_id: Mapped[RowId]
    qdef_id: Mapped[int] = mapped_column(ForeignKey("quality_check_def.qdef_id"))
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )
    run_id: Mapped[int | None] = mapped_column(ForeignKey("process_run.run_id"))
    executed_at: Mapped[Timestamp]
    status: Mapped[Short]
    failed_rows: Mapped[int | None] = mapped_column(BigInteger)
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        Index("idx_check_result_def", "qdef_id", "executed_at"),
        Index("idx_check_result_version", "dataset_version_id"),
    )
