"""Comparing versions by what the catalog knows."""

from datetime import date

import pytest

from floe.catalog import Catalog, Column, store_schemas
from floe.catalog.datasets import create_dataset
from floe.catalog.errors import VersionNotFoundError
from floe.catalog.versions import reserve_version
from floe.execution.versions.comparing import Comparison, compare_versions

DAY = date(2026, 9, 7)
OLD = (Column("id", "int"), Column("rate", "float"), Column("note", "string"))
NEW = (Column("id", "bigint"), Column("rate", "float"), Column("region", "string"))


def compared(catalog: Catalog, *schemas: tuple[Column, ...] | None) -> Comparison:
    with catalog.writing() as session:
        number = create_dataset(session, "lake", "credit.exposure").dataset_id
        for count, columns in enumerate(schemas, start=1):
            kept = None if columns is None else store_schemas(session, [columns])[0]
            reserve_version(
                session, number, DAY, state="READY", row_count=count * 10, schema_hash=kept
            )
    with catalog.reading() as session:
        return compare_versions(session, "credit.exposure", f"{DAY}.1", f"{DAY}.2")


def test_columns_that_came_went_or_changed_are_told_apart(catalog: Catalog) -> None:
    found = compared(catalog, OLD, NEW)
    assert found.schema is not None
    assert (found.schema.added, found.schema.removed) == (("region",), ("note",))
    assert found.schema.retyped == (("id", "int", "bigint"),)
    assert found.schema.breaking
    assert found.more_rows == 10


def test_what_nobody_counted_has_no_difference(catalog: Catalog) -> None:
    assert compared(catalog, OLD, OLD).more_bytes is None


def test_unknown_columns_are_not_taken_for_removed_ones(catalog: Catalog) -> None:
    assert compared(catalog, OLD, None).schema is None


def test_a_version_that_is_not_there_is_an_error_with_a_hint(catalog: Catalog) -> None:
    with pytest.raises(VersionNotFoundError, match=rf"Did you mean '{DAY}\.1'"):
        compared(catalog, OLD)
