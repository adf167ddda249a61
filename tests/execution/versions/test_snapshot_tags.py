"""Tags of tables that other tools write; metadata files agree with Spark."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floe.catalog.schemas import Column
from floe.execution.formats.lake_tables import LakeTable, read_table_state
from floe.execution.site import Site
from floe.execution.spark.lake_catalog import lake_file
from floe.execution.versions import snapshot_tags
from floe.execution.versions.snapshot_tags import tag_main, versions_on_main
from floe.spec import PlatformSpec
from floe.spec.platform import Compute, Lake, LakeCatalog
from tests.execution.maintenance.factory import new_name
from tests.execution.sites import make_site

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

TABLE = LakeTable.of("lake", "credit.exposure")
CLUSTER = PlatformSpec(compute={"default": Compute(url="sc://far:15002")})
REST = PlatformSpec(lake=Lake(catalog=LakeCatalog(type="rest", uri="https://far/lake")))
EVERY_TYPE = """
    true AS a, 1 AS b, 1.5F AS c, 1.5D AS d, 1.50BD AS e, 'x' AS f, X'00' AS g,
    DATE'2026-01-05' AS h, current_timestamp() AS i, TIMESTAMP_NTZ'2026-01-05 01:02:03' AS j,
    array(1L) AS k, map('x', named_struct('y', array(1.5BD))) AS l
"""


def keep_location(site: Site, location: object) -> None:
    """Create a lake catalog with one table, whose metadata file is at `location`."""
    lake = lake_file(site)
    assert lake is not None
    lake.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(lake)) as connection, connection:
        connection.execute(
            "CREATE TABLE iceberg_tables "
            "(catalog_name, table_namespace, table_name, metadata_location)"
        )
        row = ("lake", "credit", "exposure", str(location))
        connection.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", row)


@pytest.mark.parametrize("platform", [CLUSTER, REST])
def test_a_remote_lake_has_no_local_metadata_file(tmp_path: Path, platform: PlatformSpec) -> None:
    site = make_site(tmp_path, platform)
    assert lake_file(site) is None
    assert read_table_state(site, TABLE) is None


def test_metadata_files_contain_references_and_snapshot_summaries(tmp_path: Path) -> None:
    site, file = make_site(tmp_path), tmp_path / "1.metadata.json"
    file.write_text(
        '{"refs": {"main": {"snapshot-id": 7}},'
        ' "snapshots": [{"snapshot-id": 7, "summary": {"total-records": "3"}}],'
        ' "current-schema-id": 1, "schemas": [{"schema-id": 0, "fields": []},'
        ' {"schema-id": 1, "fields": [{"name": "id", "type": "long", "required": true}]}]}'
    )
    keep_location(site, f"file:{file}")
    state = read_table_state(site, TABLE)
    assert state is not None
    assert (state.references, state.summaries) == ({"main": "7"}, {"7": {"total-records": "3"}})
    assert state.columns == [Column("id", "bigint", nullable=False)]
    assert read_table_state(site, replace(TABLE, parts=("credit", "other"))) is None


def test_a_lake_without_tables_is_left_to_spark(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    lake = lake_file(site)
    assert lake is not None
    lake.parent.mkdir()
    lake.touch()
    assert read_table_state(site, TABLE) is None


@pytest.mark.parametrize("location", ["s3://far/1.metadata.json", "/1.gz.metadata.json", "/gone"])
def test_a_file_that_cannot_be_read_here_is_left_to_spark(tmp_path: Path, location: str) -> None:
    site = make_site(tmp_path)
    assert read_table_state(site, TABLE) is None
    keep_location(site, location)
    assert read_table_state(site, TABLE) is None


@pytest.mark.java
@pytest.mark.slow
def test_metadata_files_and_spark_agree(spark_site: Site, spark: "SparkSession") -> None:
    name = new_name()
    table = LakeTable.of("lake", name)
    spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.namespace}")
    spark.sql(f"CREATE TABLE {table.sql} AS SELECT id, {EVERY_TYPE} FROM range(3)")
    shown, given = tag_main(spark_site, spark, name, ["2026-01-05.1"])
    assert (shown.rows, given) == (3, ["2026-01-05.1"])
    # Given away already: the next number is taken, and a new snapshot is what main shows.
    spark.sql(f"INSERT INTO {table.sql} SELECT id, {EVERY_TYPE} FROM range(2)")
    later, given = tag_main(spark_site, spark, name, ["2026-01-05.1"])
    assert (later.rows, given) == (5, ["2026-01-05.2"])
    read, asked = read_table_state(spark_site, table), snapshot_tags._ask_state(spark, table)
    assert read is not None
    assert read.references == asked.references
    assert read.columns == asked.columns
    # Spark has a column of its own for the operation.
    summaries = [{**summary, "operation": ""} for summary in read.summaries.values()]
    assert summaries == [{**summary, "operation": ""} for summary in asked.summaries.values()]
    missing = new_name()
    assert versions_on_main(spark_site, spark, [name, missing]) == {name: "2026-01-05.2"}
    both = snapshot_tags._ask_references(spark, {name: table})
    assert both == snapshot_tags._all_references(spark_site, spark, [name])
