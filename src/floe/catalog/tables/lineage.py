"""The graph: which process reads and writes which dataset, and which column feeds which."""

from sqlalchemy import ForeignKey, Index, String, Text, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import Moment, Name, RowId, Short, Table
from floe.catalog.types import Identifier


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
    first_seen: Mapped[Moment]
    last_seen: Mapped[Moment]
    ended_at: Mapped[Moment | None]
    created_at: Mapped[Moment]

    # Both carry the whole edge, so that a walk in either direction reads an index and no table.
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
    """A column that feeds another, through a process."""

    __tablename__ = "column_edge"

    column_edge_id: Mapped[RowId]
    source_dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    source_column: Mapped[Name]
    target_dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.dataset_id"))
    target_column: Mapped[Name]
    process_id: Mapped[int] = mapped_column(ForeignKey("process.process_id"))
    kind: Mapped[Short]
    first_seen: Mapped[Moment]
    last_seen: Mapped[Moment]

    __table_args__ = (
        UniqueConstraint(
            "target_dataset_id",
            "target_column",
            "source_dataset_id",
            "source_column",
            "process_id",
            "kind",
            name="uq_column_edge",
        ),
        Index("idx_column_edge_source", "source_dataset_id", "source_column"),
        Index("idx_column_edge_process", "process_id"),
    )
