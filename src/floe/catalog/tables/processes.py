"""Processes, their runs, and the lineage graph between processes and datasets."""

from datetime import date
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.table_base import (
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
from floe.catalog.tables.types import Identifier, JsonText, RunUuid, YesNo


class Process(Table):
    """Declared or observed work with inputs and outputs."""

    __tablename__ = "process"

    process_id: Mapped[RowId]
    # Wider than a dataset's name: the key is the namespace and the name of an OpenLineage job.
    process_key: Mapped[str] = mapped_column(String(600))
    name: Mapped[LongName | None]
    description: Mapped[str | None] = mapped_column(Text)
    technology: Mapped[str | None] = mapped_column(String(50))
    team: Mapped[Name | None]
    owner_email: Mapped[Name | None]
    trigger_mode: Mapped[Short]
    status: Mapped[Short]
    sla_id: Mapped[int | None] = mapped_column(ForeignKey("sla.sla_id"))
    project_id: Mapped[int | None] = mapped_column(ForeignKey("project.project_id"))
    declaration_json: Mapped[Any | None] = mapped_column(JsonText)
    created_at: Mapped[Timestamp]
    updated_at: Mapped[Timestamp | None]

    __table_args__ = (
        Index("idx_process_key", "process_key", unique=True),
        Index("idx_process_name", "name"),
        sparse_index("idx_process_project", "project_id"),
    )


class ProcessRun(Table):
    """One execution of a process."""

    __tablename__ = "process_run"

    run_id: Mapped[RowId]
    run_uuid: Mapped[str] = mapped_column(RunUuid)
    process_id: Mapped[int] = mapped_column(ForeignKey("process.process_id"))
    business_date: Mapped[date | None]
    partition_key: Mapped[LongName | None]
    start_ts: Mapped[Timestamp | None]
    end_ts: Mapped[Timestamp | None]
    status: Mapped[Short]
    attempt: Mapped[int] = mapped_column(Integer)
    parent_run_uuid: Mapped[str | None] = mapped_column(RunUuid)
    log_location: Mapped[StoragePath | None]
    historical: Mapped[bool] = mapped_column(YesNo)
    facets_json: Mapped[Any | None] = mapped_column(JsonText)
    facets_at: Mapped[Timestamp | None]
    # Both are true if reports contradict each other.
    saw_success: Mapped[bool] = mapped_column(YesNo)
    saw_failure: Mapped[bool] = mapped_column(YesNo)
    created_at: Mapped[Timestamp]
    # floe itself reported the run, so no event from outside changes it.
    own: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")

    __table_args__ = (
        UniqueConstraint("run_uuid"),
        Index("idx_process_run_process_ts", "process_id", "start_ts"),
        Index("idx_process_run_date", "process_id", "business_date"),
        sparse_index("idx_process_run_parent", "parent_run_uuid"),
        Index("idx_process_run_created", "created_at"),
    )


class RunInput(Table):
    """A version that a run read. The tag is empty if the version is unknown."""

    __tablename__ = "run_input"

    run_id: Mapped[int] = mapped_column(ForeignKey("process_run.run_id"), primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"), primary_key=True)
    version_tag: Mapped[str] = mapped_column(String(300), primary_key=True)
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )

    __table_args__ = (
        Index("idx_run_input_dataset", "dataset_id"),
        sparse_index("idx_run_input_version", "dataset_version_id"),
    )


class RunStep(Table):
    """A named part of a run, with its dependencies, timing and row count."""

    __tablename__ = "run_step"

    run_step_id: Mapped[RowId]
    run_id: Mapped[int] = mapped_column(ForeignKey("process_run.run_id"))
    step_name: Mapped[Name]
    step_order: Mapped[int] = mapped_column(Integer)
    depends_on_json: Mapped[Any | None] = mapped_column(JsonText)
    status: Mapped[Short]
    start_ts: Mapped[Timestamp | None]
    end_ts: Mapped[Timestamp | None]
    row_count: Mapped[int | None] = mapped_column(BigInteger)
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (UniqueConstraint("run_id", "step_name"),)


# The lineage tables have no foreign keys: a nightly batch writes millions of rows, and the database
# would check every key of every row. Datasets and processes are never deleted, except by joins.


class LineageEdge(Table):
    """A directed edge. CONSUMES runs dataset → process, PRODUCES process → dataset."""

    __tablename__ = "lineage_edge"

    edge_id: Mapped[RowId]
    source_type: Mapped[Short]
    source_id: Mapped[int] = mapped_column(Identifier)
    target_type: Mapped[Short]
    target_id: Mapped[int] = mapped_column(Identifier)
    edge_role: Mapped[str] = mapped_column(String(30))
    known_by: Mapped[Short]
    transform_meta: Mapped[str | None] = mapped_column(Text)
    first_seen: Mapped[Timestamp]
    last_seen: Mapped[Timestamp]
    ended_at: Mapped[Timestamp | None]
    created_at: Mapped[Timestamp]

    # Covering indexes: a walk in either direction reads only the index.
    __table_args__ = (
        Index(
            "idx_lineage_src",
            "source_type",
            "source_id",
            "target_type",
            "target_id",
            "edge_role",
            "known_by",
            unique=True,
        ),
        Index("idx_lineage_tgt", "target_type", "target_id", "source_type", "source_id"),
    )


class ColumnEdge(Table):
    """A column that feeds another through a process, in one distinct column lineage."""

    __tablename__ = "column_edge"

    # In the order of the key, which also serves upstream lookups by target column.
    target_dataset_id: Mapped[int] = mapped_column(
        Identifier, primary_key=True, autoincrement=False
    )
    target_column: Mapped[str] = mapped_column(String(200), primary_key=True)
    source_dataset_id: Mapped[int] = mapped_column(
        Identifier, primary_key=True, autoincrement=False
    )
    source_column: Mapped[str] = mapped_column(String(200), primary_key=True)
    process_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(String(20), primary_key=True)
    lineage_hash: Mapped[str] = mapped_column(String(64), primary_key=True)

    __table_args__ = (Index("idx_column_edge_source", "source_dataset_id", "source_column"),)


class ColumnSighting(Table):
    """When a process was seen with this column lineage. The newest one is current."""

    __tablename__ = "column_sighting"

    process_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    dataset_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    lineage_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    first_seen: Mapped[Timestamp]
    last_seen: Mapped[Timestamp]

    __table_args__ = (Index("idx_column_sighting_dataset", "dataset_id"),)


class SchemaSighting(Table):
    """When a dataset was seen with a schema: its schema history."""

    __tablename__ = "schema_sighting"

    dataset_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    schema_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    first_seen: Mapped[Timestamp]
    last_seen: Mapped[Timestamp]


class ObservedFacet(Table):
    """The newest facet of each kind that events sent for a dataset or process."""

    __tablename__ = "observed_facet"

    owner_type: Mapped[str] = mapped_column(String(20), primary_key=True)
    owner_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    facet: Mapped[str] = mapped_column(String(100), primary_key=True)
    facet_hash: Mapped[SchemaHash]
    seen_at: Mapped[Timestamp]
    body: Mapped[str] = mapped_column(Text)
