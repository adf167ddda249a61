"""Schemas: each distinct list of columns is stored once, under its hash."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec import Struct
from sqlalchemy import and_, bindparam, or_, select
from sqlalchemy.orm import Session

from floe.catalog.queries import TypedQuery
from floe.catalog.stores import store_of
from floe.catalog.tables import DatasetSchema, SchemaSighting

# One encoder for all calls: `json.dumps` would create a new one each time.
_encode = json.JSONEncoder(sort_keys=True).encode


class Column(Struct, frozen=True):
    """One column of a schema."""

    name: str
    type: str
    nullable: bool = True
    metadata: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class SchemaDiff:
    """The differences between two schemas."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    retyped: tuple[tuple[str, str, str], ...]
    tightened: tuple[str, ...]  # columns that no longer allow null
    loosened: tuple[str, ...]

    @property
    def breaking(self) -> bool:
        """Whether the change can break readers of the old schema."""
        return bool(self.removed or self.retyped or self.loosened)

    @property
    def empty(self) -> bool:
        return not (self.added or self.breaking or self.tightened)


def hash_schema(columns: Sequence[Column]) -> str:
    """Return the hash under which these columns are stored."""
    values = [
        (column.name, column.type, column.nullable, column.metadata and dict(column.metadata))
        for column in columns
    ]
    return hashlib.sha256(_encode(values).encode()).hexdigest()


def store_schemas(session: Session, schemas: Sequence[Sequence[Column]]) -> list[str]:
    """Store the schemas that are new; return the hashes of all in order."""
    hashes = [hash_schema(columns) for columns in schemas]
    rows = [
        {
            "schema_hash": schema_hash,
            "column_order": order,
            "column_name": column.name,
            "column_type": column.type,
            "nullable": column.nullable,
            "column_metadata": dict(column.metadata) if column.metadata else None,
        }
        for schema_hash, columns in dict(zip(hashes, schemas, strict=True)).items()
        for order, column in enumerate(columns)
    ]
    if rows:
        store_of(session).upsert(
            session, DatasetSchema, rows, key=("schema_hash", "column_order"), update=()
        )
    return hashes


def list_columns(session: Session, schema_hash: str | None) -> list[Column]:
    """Return the columns of a schema in order; empty for an unknown schema."""
    rows = session.scalars(
        select(DatasetSchema)
        .where(DatasetSchema.schema_hash == schema_hash)
        .order_by(DatasetSchema.column_order)
    )
    return [
        Column(row.column_name, row.column_type, row.nullable, row.column_metadata) for row in rows
    ]


def diff_schemas(before: Sequence[Column], after: Sequence[Column]) -> SchemaDiff:
    """Return the differences between two schemas."""
    old = {column.name: column for column in before}
    new = {column.name: column for column in after}
    common = [(old[name], new[name]) for name in old if name in new]
    return SchemaDiff(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        retyped=tuple((a.name, a.type, b.type) for a, b in common if a.type != b.type),
        tightened=tuple(a.name for a, b in common if a.nullable and not b.nullable),
        loosened=tuple(a.name for a, b in common if b.nullable and not a.nullable),
    )


def list_schema_history(
    session: Session,
    dataset_id: int,
    *,
    after: tuple[datetime, str] | None = None,
    limit: int | None = None,
) -> Sequence[SchemaSighting]:
    """Return the observed schemas of a dataset after `after`, newest first."""
    of = SchemaSighting
    query = select(of).where(of.dataset_id == dataset_id)
    if after is not None:
        seen, schema_hash = after
        query = query.where(
            or_(of.last_seen < seen, and_(of.last_seen == seen, of.schema_hash > schema_hash))
        )
    return session.scalars(query.order_by(of.last_seen.desc(), of.schema_hash).limit(limit)).all()


def list_columns_of(session: Session, hashes: Iterable[str]) -> dict[str, list[Column]]:
    """Return the columns of several schemas by hash."""
    columns: dict[str, list[Column]] = {schema_hash: [] for schema_hash in hashes}
    rows = session.scalars(
        select(DatasetSchema)
        .where(DatasetSchema.schema_hash.in_(sorted(columns)))
        .order_by(DatasetSchema.schema_hash, DatasetSchema.column_order)
    )
    for row in rows:
        column = Column(row.column_name, row.column_type, row.nullable, row.column_metadata)
        columns[row.schema_hash].append(column)
    return columns


def describe_columns(session: Session, schema_hash: str | None) -> list[Column]:
    """Return the columns of a schema in order; empty for an unknown schema."""
    if schema_hash is None:
        return []
    return _COLUMNS.fetch(session, schema_hash=schema_hash)


_OF = DatasetSchema.__table__.c
_COLUMNS = TypedQuery(
    Column,
    select(
        _OF.column_name.label("name"),
        _OF.column_type.label("type"),
        _OF.nullable,
        _OF.column_metadata.label("metadata"),
    )
    .where(_OF.schema_hash == bindparam("schema_hash", type_=_OF.schema_hash.type))
    .order_by(_OF.column_order),
)
