"""Processes and their runs."""

from datetime import date
from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import (
    LongName,
    Moment,
    Name,
    Place,
    RowId,
    Short,
    Table,
    index_of_some,
)
from floe.catalog.types import JsonText, RunUuid, YesNo


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
    created_at: Mapped[Moment]
    updated_at: Mapped[Moment | None]

    __table_args__ = (
        Index("idx_process_key", "process_key", unique=True),
        Index("idx_process_name", "name"),
        index_of_some("idx_process_project", "project_id"),
    )


class ProcessRun(Table):
    """One execution of a process."""

    __tablename__ = "process_run"

    run_id: Mapped[RowId]
    run_uuid: Mapped[str] = mapped_column(RunUuid)
    process_id: Mapped[int] = mapped_column(ForeignKey("process.process_id"))
    business_date: Mapped[date | None]
    partition_key: Mapped[LongName | None]
    start_ts: Mapped[Moment | None]
    end_ts: Mapped[Moment | None]
    status: Mapped[Short]
    attempt: Mapped[int] = mapped_column(Integer)
    parent_run_uuid: Mapped[str | None] = mapped_column(RunUuid)
    log_location: Mapped[Place | None]
    historical: Mapped[bool] = mapped_column(YesNo)
    facets_json: Mapped[Any | None] = mapped_column(JsonText)
    facets_at: Mapped[Moment | None]
    # Both at once is a conflict that is kept: somebody said that it succeeded and that it failed.
    saw_success: Mapped[bool] = mapped_column(YesNo)
    saw_failure: Mapped[bool] = mapped_column(YesNo)
    created_at: Mapped[Moment]
    # floe itself reported the run: no event from outside changes it.
    own: Mapped[bool] = mapped_column(YesNo, default=False, server_default="N")

    __table_args__ = (
        UniqueConstraint("run_uuid"),
        Index("idx_process_run_process_ts", "process_id", "start_ts"),
        Index("idx_process_run_date", "process_id", "business_date"),
        index_of_some("idx_process_run_parent", "parent_run_uuid"),
        Index("idx_process_run_created", "created_at"),
    )


class RunInput(Table):
    """A version that a run read. Without a known version the tag is empty and the row says so."""

    __tablename__ = "run_input"

    run_id: Mapped[int] = mapped_column(ForeignKey("process_run.run_id"), primary_key=True)
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"), primary_key=True)
    version_tag: Mapped[str] = mapped_column(String(300), primary_key=True)
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )

    __table_args__ = (
        Index("idx_run_input_dataset", "dataset_id"),
        index_of_some("idx_run_input_version", "dataset_version_id"),
    )


class RunStep(Table):
    """A named part of a run, with its own place in the sub-step graph, timing and row count."""

    __tablename__ = "run_step"

    run_step_id: Mapped[RowId]
    run_id: Mapped[int] = mapped_column(ForeignKey("process_run.run_id"))
    step_name: Mapped[Name]
    step_order: Mapped[int] = mapped_column(Integer)
    depends_on_json: Mapped[Any | None] = mapped_column(JsonText)
    status: Mapped[Short]
    start_ts: Mapped[Moment | None]
    end_ts: Mapped[Moment | None]
    row_count: Mapped[int | None] = mapped_column(BigInteger)
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (UniqueConstraint("run_id", "step_name"),)
