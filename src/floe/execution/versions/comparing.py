"""Compare two versions of a dataset by what the catalog knows of them; no row is read."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.datasets import find_dataset
from floe.catalog.schemas import Column, SchemaDiff, diff_schemas, list_columns
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import get_version

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@dataclass(frozen=True)
class Side:
    """One of two versions."""

    tag: str
    state: str
    rows: int | None
    bytes: int | None
    columns: tuple[Column, ...] | None
    """None when nobody said which columns it has."""


@dataclass(frozen=True)
class Comparison:
    """How a version differs from another."""

    dataset: str
    before: Side
    after: Side
    schema: SchemaDiff | None
    """None when the columns of either are not known."""

    @property
    def more_rows(self) -> int | None:
        return _difference(self.before.rows, self.after.rows)

    @property
    def more_bytes(self) -> int | None:
        return _difference(self.before.bytes, self.after.bytes)


def compare_versions(session: "Session", name: str, before: str, after: str) -> Comparison:
    """Say how the second version differs from the first."""
    dataset = find_dataset(session, name)
    first, second = (_side(session, get_version(session, dataset, tag)) for tag in (before, after))
    known = first.columns is not None and second.columns is not None
    schema = diff_schemas(first.columns or (), second.columns or ()) if known else None
    return Comparison(dataset.name, first, second, schema)


def _side(session: "Session", version: DatasetVersion) -> Side:
    columns = tuple(list_columns(session, version.schema_hash))
    return Side(
        version.version_tag,
        version.state,
        version.row_count,
        version.size_bytes,
        columns or None,
    )


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else after - before
