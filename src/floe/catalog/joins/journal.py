"""The journal of a join: everything it changes, so that a split can undo it."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from sqlalchemy import ColumnElement, Date
from sqlalchemy.orm import Session

from floe.catalog.stores import store_of
from floe.catalog.tables import (
    Change,
    ColumnEdge,
    ColumnSighting,
    DatasetAlias,
    DatasetEvent,
    DatasetJoin,
    DatasetRegistration,
    DatasetTag,
    DatasetVersion,
    LineageEdge,
    ObservedFacet,
    QualityCheckDef,
    QualityCheckResult,
    RunInput,
    SchemaSighting,
    Table,
)
from floe.catalog.tables.types import UtcTime

_EDGE = ("edge_role", "known_by")

_COLUMNS = ("source_column", "target_column", "process_id", "kind", "lineage_hash")


@dataclass(frozen=True)
class Link:
    """A column that refers to a dataset.

    Two rows with equal values in the `same` columns become duplicates when their datasets are
    joined. Without `same` columns, rows are never duplicates.
    """

    table: type[Table]
    column: str
    same: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.table.__tablename__}.{self.column}"

    @property
    def key(self) -> tuple[str, ...]:
        """The primary key columns besides the one that refers to the dataset."""
        return tuple(name for name in key_names(self.table) if name != self.column)

    def condition(self, session: Session, ids: Iterable[int]) -> ColumnElement[bool]:
        """Return the condition for rows that refer to one of these datasets."""
        column = self.table.__table__.c[self.column]
        matches = store_of(session).among(column, sorted(ids))
        # Edges and facets refer to datasets or processes, whose ids overlap.
        kind = _KINDS.get(self.column)
        return matches & (self.table.__table__.c[kind] == "DATASET") if kind else matches


_KINDS = {"source_id": "source_type", "target_id": "target_type", "owner_id": "owner_type"}

LINKS = (
    Link(DatasetEvent, "dataset_id"),
    Link(DatasetRegistration, "dataset_id"),
    Link(Change, "dataset_id"),
    Link(DatasetAlias, "dataset_id"),
    Link(DatasetTag, "dataset_id", ("tag",)),
    Link(RunInput, "dataset_id", ("run_id", "version_tag")),
    Link(SchemaSighting, "dataset_id", ("schema_hash",)),
    Link(ColumnSighting, "dataset_id", ("process_id", "lineage_hash")),
    Link(ColumnEdge, "source_dataset_id", ("target_dataset_id", *_COLUMNS)),
    Link(ColumnEdge, "target_dataset_id", ("source_dataset_id", *_COLUMNS)),
    Link(LineageEdge, "source_id", ("source_type", "target_type", "target_id", *_EDGE)),
    Link(LineageEdge, "target_id", ("target_type", "source_type", "source_id", *_EDGE)),
    Link(ObservedFacet, "owner_id", ("owner_type", "facet")),
    Link(DatasetJoin, "kept_id"),
    Link(DatasetJoin, "split_id"),
)

VERSIONS = Link(DatasetVersion, "dataset_id")

CHECKS = Link(QualityCheckDef, "dataset_id")

# Tables that refer to a version or a check.
VERSION_REFERENCES: tuple[type[Table], ...] = (
    DatasetEvent,
    Change,
    RunInput,
    QualityCheckResult,
)

CHECK_REFERENCES: tuple[type[Table], ...] = (QualityCheckResult,)


@dataclass
class Journal:
    """What one join did, in JSON-compatible values."""

    dataset: dict[str, Any]
    # By link: the keys of rows that were moved, and the rows that were merged into another.
    moved: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    merged: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    # Versions of either dataset: id, and their values before the join.
    versions: list[dict[str, Any]] = field(default_factory=list)
    kept_versions: list[dict[str, Any]] = field(default_factory=list)
    checks: list[int] = field(default_factory=list)
    # Versions and checks that both had: the deleted row, and the rows that referred to it.
    dropped: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    kept_floe_writes: bool = False


def key_names(table: type[Any]) -> tuple[str, ...]:
    """Return the attributes that make up the primary key of a table."""
    mapper = table.__mapper__
    return tuple(mapper.get_property_by_column(column).key for column in mapper.primary_key)


def row_to_json(row: Any) -> dict[str, Any]:
    """Return the values of a row as JSON-compatible values, by attribute name."""
    names = [attribute.key for attribute in type(row).__mapper__.column_attrs]
    return {name: _to_json(getattr(row, name)) for name in names}


def _to_json(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def row_from_json(table: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the values of `row_to_json` back to those of the table."""
    return {
        name: _from_json(table.__mapper__.column_attrs[name].columns[0].type, value)
        for name, value in values.items()
    }


def _from_json(kind: Any, value: Any) -> Any:
    if value is not None and isinstance(kind, UtcTime):
        return datetime.fromisoformat(value)
    return date.fromisoformat(value) if value is not None and isinstance(kind, Date) else value
