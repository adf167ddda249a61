"""Promises and checks: what a dataset should be, and what was found."""

from typing import Any

from sqlalchemy import BigInteger, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import Moment, Name, RowId, Short, Table
from floe.catalog.types import JsonText, YesNo


class Sla(Table):
    """A promise: a version by a time of day, one no older than a window, or a run no longer."""

    __tablename__ = "sla"

    sla_id: Mapped[RowId]
    # The dataset or process it belongs to names it, with room for the longest process key.
    name: Mapped[str] = mapped_column(String(650))
    description: Mapped[str | None] = mapped_column(Text)
    sla_window_sec: Mapped[int | None] = mapped_column(Integer)
    due: Mapped[str | None] = mapped_column(String(8))
    zone: Mapped[str | None] = mapped_column(String(60))
    calendar: Mapped[str | None] = mapped_column(String(100))
    day_offset: Mapped[int | None] = mapped_column(Integer)
    escalation_json: Mapped[Any | None] = mapped_column(JsonText)
    created_at: Mapped[Moment]
    updated_at: Mapped[Moment | None]

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
    created_at: Mapped[Moment]
    updated_at: Mapped[Moment | None]

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
    executed_at: Mapped[Moment]
    status: Mapped[Short]
    failed_rows: Mapped[int | None] = mapped_column(BigInteger)
    detail_json: Mapped[Any | None] = mapped_column(JsonText)

    __table_args__ = (
        Index("idx_check_result_def", "qdef_id", "executed_at"),
        Index("idx_check_result_version", "dataset_version_id"),
    )
