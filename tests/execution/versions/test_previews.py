"""Reading versions: which may be read, previews and comparisons."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floe.catalog import Catalog, Column, store_schemas
from floe.catalog.datasets import create_dataset
from floe.catalog.errors import VersionNotFoundError
from floe.catalog.projects.datasets import add_undeclared_dataset
from floe.catalog.stable_names import details_of, with_details
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import REJECTED, advance_version, reserve_version
from floe.errors import FloeError
from floe.execution.formats.contract import VersionUnreadableError
from floe.execution.formats.lake_tables import LakeTable
from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.previews import (
    Comparison,
    NoReadyVersionError,
    VersionNotReadableError,
    choose_version,
    compare_versions,
    preview_version,
)
from floe.execution.versions.snapshot_tags import tag_main
from floe.execution.workspace import UndeclaredError, Workspace
from floe.settings import ProjectPaths
from floe.spec import DatasetSpec, PlatformSpec, ProjectSpec
from tests.execution.maintenance.factory import (
    MONDAY,
    TUESDAY,
    make_version,
    new_name,
    opened,
    project,
    read,
)

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

NAME = "credit.exposure"

DAY = date(2026, 9, 7)
OLD = (Column("id", "int"), Column("rate", "float"), Column("note", "string"))
NEW = (Column("id", "bigint"), Column("rate", "float"), Column("region", "string"))


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A project without a Spark server."""
    return Site(ProjectPaths(tmp_path), ProjectSpec(name="test"), PlatformSpec())


def add(workspace: Workspace, state: str, reason: str | None = None) -> str:
    """Create a version in a state, without data."""
    with workspace.catalog.writing() as session:
        first = state if state in ("READY", "WRITTEN", "EXTERNAL") else "WRITING"
        version = reserve_version(session, workspace.dataset_id(NAME), MONDAY, state=first)
        if state != first:
            advance_version(session, version, state, reason=reason, actor="ann")
        return version.version_tag


def chosen(workspace: Workspace, tag: str | None = None) -> str:
    with workspace.catalog.reading() as session:
        return choose_version(session, workspace, NAME, tag).version_tag


def test_the_newest_ready_version_is_read_unless_another_is_asked_for(
    site: Site, tmp_path: Path
) -> None:
    with opened(site, project(NAME), tmp_path) as workspace:
        with pytest.raises(NoReadyVersionError, match=r"floe versions credit\.exposure"):
            chosen(workspace)
        old, new, written = (add(workspace, state) for state in ("READY", "READY", "WRITTEN"))
        assert chosen(workspace) == new
        assert chosen(workspace, old) == old
        assert chosen(workspace, written) == written


def test_an_unreadable_version_says_when_by_whom_and_why(site: Site, tmp_path: Path) -> None:
    with opened(site, project(NAME), tmp_path) as workspace:
        tag = add(workspace, REJECTED, "no_negative: 3 rows")
        with pytest.raises(VersionNotReadableError, match=r"rejected on .* by ann: no_negative"):
            chosen(workspace, tag)
        with pytest.raises(VersionNotReadableError, match="is being written on"):
            chosen(workspace, add(workspace, "WRITING"))
        with pytest.raises(FloeError, match="has no version 'nonsense'"):
            chosen(workspace, "nonsense")


def test_only_datasets_of_the_project_can_be_read(site: Site, tmp_path: Path) -> None:
    with (
        opened(site, project(NAME), tmp_path) as workspace,
        pytest.raises(UndeclaredError, match=r"Did you mean 'credit\.exposure'"),
    ):
        preview_version(workspace, SparkSessions(site), "credit.exposur")


@pytest.mark.java
@pytest.mark.slow
def test_a_preview_has_the_first_rows_of_any_type_as_json(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    schema = "id int, amount decimal(38,2), day date, at timestamp, tags array<string>"
    at = datetime(2026, 9, 8, 7, 6, 5, 123456, tzinfo=UTC)
    amount = Decimal("123456789012345678901234567890.10")
    with opened(spark_site, project(name), tmp_path) as workspace:
        rows = [(1, amount, TUESDAY, at, ["x", "y"])]
        tag = make_version(workspace, spark, name, MONDAY, rows, schema=schema)
        assert read(workspace, spark, name, tag).count() == 1
        preview = preview_version(workspace, SparkSessions(workspace.site), name, limit=5)
        assert preview.columns == ("id", "amount", "day", "at", "tags")
        assert preview.row_count == 1
        (row,) = [json.loads(line, parse_float=Decimal) for line in preview.lines]
        assert row == {
            "id": 1,
            "amount": amount,
            "day": "2026-09-08",
            "at": "2026-09-08T07:06:05.123456Z",
            "tags": ["x", "y"],
        }


@pytest.mark.java
@pytest.mark.slow
def test_a_version_with_missing_data_is_an_error(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        with workspace.catalog.writing() as session:
            version = get_version_of(session, workspace.dataset_id(name), tag)
            details = {**details_of(version), "snapshot": "123"}
            version.metadata_json = with_details(version, details)
        with pytest.raises(VersionUnreadableError, match=f"Version {tag} of '{name}'"):
            preview_version(workspace, SparkSessions(workspace.site), name)


@pytest.mark.java
@pytest.mark.slow
def test_an_undeclared_version_in_the_lake_can_be_read(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    table = LakeTable.of("lake", name)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.namespace}")
    with opened(spark_site, {"name": "test"}, tmp_path) as workspace:
        with pytest.raises(UndeclaredError):
            preview_version(workspace, SparkSessions(workspace.site), name)
        with workspace.catalog.writing() as session:
            spec = workspace.site.spec
            dataset_id = add_undeclared_dataset(session, spec, name, DatasetSpec(), lake="lake")
            tags = [
                reserve_version(session, dataset_id, day, state="READY").version_tag
                for day in (MONDAY, TUESDAY)
            ]
        spark.sql(f"CREATE TABLE {table.sql} AS SELECT 1 AS id")
        tag_main(workspace.site, spark, name, tags[:1])
        spark.sql(f"INSERT INTO {table.sql} VALUES (2)")
        sparks = SparkSessions(workspace.site)
        with pytest.raises(
            VersionUnreadableError, match="recorded no snapshot, and the table has no tag"
        ):
            preview_version(workspace, sparks, name, tag=tags[1])
        preview = preview_version(workspace, sparks, name, tag=tags[0])
        assert [json.loads(line) for line in preview.lines] == [{"id": 1}]


def compared(catalog: Catalog, *schemas: tuple[Column, ...] | None) -> Comparison:
    with catalog.writing() as session:
        dataset_id = create_dataset(session, "lake", "credit.exposure").dataset_id
        for count, columns in enumerate(schemas, start=1):
            kept = None if columns is None else store_schemas(session, [columns])[0]
            reserve_version(
                session, dataset_id, DAY, state="READY", row_count=count * 10, schema_hash=kept
            )
    with catalog.reading() as session:
        return compare_versions(session, "credit.exposure", f"{DAY}.1", f"{DAY}.2")


def test_added_removed_and_changed_columns_are_distinguished(catalog: Catalog) -> None:
    comparison = compared(catalog, OLD, NEW)
    assert comparison.schema is not None
    assert (comparison.schema.added, comparison.schema.removed) == (("region",), ("note",))
    assert comparison.schema.retyped == (("id", "int", "bigint"),)
    assert comparison.schema.breaking
    assert comparison.more_rows == 10


def test_unknown_row_counts_have_no_difference(catalog: Catalog) -> None:
    assert compared(catalog, OLD, OLD).more_bytes is None


def test_unknown_columns_do_not_count_as_removed(catalog: Catalog) -> None:
    assert compared(catalog, OLD, None).schema is None


def test_a_missing_version_is_an_error_with_a_hint(catalog: Catalog) -> None:
    with pytest.raises(VersionNotFoundError, match=rf"Did you mean '{DAY}\.1'"):
        compared(catalog, OLD)
