"""The graph: which process reads and writes which dataset, and which column feeds which.

These tables have no foreign keys: a night writes millions of their rows, and each key would be
looked up for each. Datasets and processes are never deleted, but for two that are joined.
"""

from sqlalchemy import Index, String, Text
from sqlalchemy.orm import Mapped, mapped_column

from floe.catalog.tables.base import Moment, RowId, SchemaHash, Short, Table
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
    """A column that feeds another, through a process, as one distinct column lineage has it."""

    __tablename__ = "column_edge"

    # In the order of the key, which is also the way to what a column is made from.
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
    """When a process was seen to fill a dataset by this column lineage. The newest one holds."""

    __tablename__ = "column_sighting"

    process_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    dataset_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    lineage_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    first_seen: Mapped[Moment]
    last_seen: Mapped[Moment]

    __table_args__ = (Index("idx_column_sighting_dataset", "dataset_id"),)


class SchemaSighting(Table):
    """When a dataset was seen with a schema: its schema history."""

    __tablename__ = "schema_sighting"

    dataset_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    schema_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    first_seen: Mapped[Moment]
    last_seen: Mapped[Moment]


class ObservedFacet(Table):
    """The newest facet of a kind that events gave a dataset or a process."""

    __tablename__ = "observed_facet"

    owner_type: Mapped[str] = mapped_column(String(20), primary_key=True)
    owner_id: Mapped[int] = mapped_column(Identifier, primary_key=True, autoincrement=False)
    facet: Mapped[str] = mapped_column(String(100), primary_key=True)
    facet_hash: Mapped[SchemaHash]
    seen_at: Mapped[Moment]
    body: Mapped[str] = mapped_column(Text)
