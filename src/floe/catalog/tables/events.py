"""Raw events as they came, and the ordered log of changes made from them."""

from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import LongName, Moment, Name, RowId, Table
from floe.catalog.types import JsonText, RunUuid, YesNo


class RunEvent(Table):
    """A report that something happened, kept as it came. PostgreSQL partitions it by day."""

    __tablename__ = "run_event"

    event_id: Mapped[RowId]
    event_day: Mapped[date]
    event_hash: Mapped[str] = mapped_column(String(64))
    event_time: Mapped[Moment]
    event_type: Mapped[str] = mapped_column(String(50))
    run_uuid: Mapped[str | None] = mapped_column(RunUuid)
    process_key: Mapped[str | None] = mapped_column(String(600))
    payload_json: Mapped[bytes] = mapped_column(LargeBinary)
    payload_codec: Mapped[str] = mapped_column(String(10))
    historical: Mapped[bool] = mapped_column(YesNo)
    received_at: Mapped[Moment]

    # The day comes first, so that the key is legal on a table partitioned by it.
    __table_args__ = (
        UniqueConstraint("event_day", "event_hash"),
        Index("idx_event_runuuid", "run_uuid"),
        Index("idx_event_process", "process_key", "event_time"),
    )


class Change(Table):
    """A row of the ordered log that triggers and monitors read from a cursor."""

    __tablename__ = "change"

    # POSITION is a reserved word on DB2.
    position: Mapped[int] = mapped_column(
        "change_position", BigInteger, primary_key=True, autoincrement=False
    )
    kind: Mapped[str] = mapped_column(String(50))
    dataset_id: Mapped[int | None] = mapped_column(ForeignKey("dataset.dataset_id"))
    dataset_version_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset_version.dataset_version_id")
    )
    process_id: Mapped[int | None] = mapped_column(ForeignKey("process.process_id"))
    run_id: Mapped[int | None] = mapped_column(ForeignKey("process_run.run_id"))
    business_date: Mapped[date | None]
    partition_key: Mapped[LongName | None]
    occurred_at: Mapped[Moment]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)


class ChangeHead(Table):
    """One row: the last position given out. Its lock puts changes into commit order."""

    __tablename__ = "change_head"

    head_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    last_position: Mapped[int] = mapped_column(BigInteger)
    # Grows when a known name of a dataset comes to mean another dataset: by a join or a split.
    names_epoch: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))


class ChangeCursor(Table):
    """How far a reader of the log has come."""

    __tablename__ = "change_cursor"

    reader: Mapped[str] = mapped_column(String(200), primary_key=True)
    position: Mapped[int] = mapped_column("change_position", BigInteger)
    updated_at: Mapped[Moment]


class ImportState(Table):
    """How far a bulk import has come, so that it goes on where it stopped."""

    __tablename__ = "import_state"

    source: Mapped[str] = mapped_column("source", String(600), primary_key=True, quote=False)
    done_lines: Mapped[int] = mapped_column(BigInteger)
    done_bytes: Mapped[int] = mapped_column(BigInteger)
    rejected_lines: Mapped[int] = mapped_column(BigInteger)
    started_by: Mapped[Name | None]
    updated_at: Mapped[Moment]
