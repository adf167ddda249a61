"""Raw events as received, and the ordered log of changes derived from them."""

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

from floe.catalog.tables.table_base import LongName, Name, RowId, Table, Timestamp
from floe.catalog.tables.types import JsonText, RunUuid, YesNo


class RunEvent(Table):
    """An event, stored as received. Partitioned by day on PostgreSQL."""

    __tablename__ = "run_event"

    event_id: Mapped[RowId]
    event_day: Mapped[date]
    event_hash: Mapped[str] = mapped_column(String(64))
    event_time: Mapped[Timestamp]
    event_type: Mapped[str] = mapped_column(String(50))
    run_uuid: Mapped[str | None] = mapped_column(RunUuid)
    process_key: Mapped[str | None] = mapped_column(String(600))
    payload_json: Mapped[bytes] = mapped_column(LargeBinary)
    payload_codec: Mapped[str] = mapped_column(String(10))
    historical: Mapped[bool] = mapped_column(YesNo)
    received_at: Mapped[Timestamp]

    # The unique key must include the day, because PostgreSQL partitions the table by it.
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
    occurred_at: Mapped[Timestamp]
    detail_json: Mapped[Any | None] = mapped_column(JsonText)


class ChangeHead(Table):
    """One row: the last position used. Locking it puts changes into commit order."""

    __tablename__ = "change_head"

    head_id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    last_position: Mapped[int] = mapped_column(BigInteger)
    # Incremented when a join or a split moves a name to another dataset.
    names_epoch: Mapped[int] = mapped_column(BigInteger, default=0, server_default=text("0"))


class ChangeCursor(Table):
    """The position of a reader of the change log."""

    __tablename__ = "change_cursor"

    reader: Mapped[str] = mapped_column(String(200), primary_key=True)
    position: Mapped[int] = mapped_column("change_position", BigInteger)
    updated_at: Mapped[Timestamp]


class ImportState(Table):
    """The progress of a file import, so that it can resume."""

    __tablename__ = "import_state"

    source: Mapped[str] = mapped_column("source", String(600), primary_key=True, quote=False)
    done_lines: Mapped[int] = mapped_column(BigInteger)
    done_bytes: Mapped[int] = mapped_column(BigInteger)
    rejected_lines: Mapped[int] = mapped_column(BigInteger)
    started_by: Mapped[Name | None]
    updated_at: Mapped[Timestamp]
