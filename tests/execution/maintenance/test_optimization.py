"""Compaction and statistics of real lake tables."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from floe.execution.maintenance.optimization import (
    Analyzed,
    NotALakeTableError,
    analyze_datasets,
    compact_datasets,
)
from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.retractions import retract
from tests.execution.maintenance.factory import (
    MONDAY,
    TUESDAY,
    make_version,
    new_name,
    opened,
    project,
    read,
    shown,
)

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_small_files_are_merged_and_every_version_stays_readable(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        sparks = SparkSessions(workspace.site)
        tags = [
            make_version(workspace, spark, name, MONDAY, [(order_id, "a")], mode="append")
            for order_id in range(3)
        ]
        (done,) = compact_datasets(workspace, sparks, [name], min_input_files=2)
        assert (done.files_before, done.files_after) == (3, 1)
        assert shown(workspace, spark, name) == [0, 1, 2]
        assert read(workspace, spark, name, tags[1]).count() == 2
        assert read(workspace, spark, name).count() == 3
        # Writing goes on from the compacted table, and taking back leads before it.
        last = make_version(workspace, spark, name, TUESDAY, [(3, "a")], mode="append")
        assert shown(workspace, spark, name) == [0, 1, 2, 3]
        retract(workspace, sparks, name, last, reason="wrong", actor="ann")
        assert shown(workspace, spark, name) == [0, 1, 2]


def test_a_table_that_was_never_written_is_skipped(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        sparks = SparkSessions(workspace.site)
        assert compact_datasets(workspace, sparks, [name])[0].files_before == 0
        assert analyze_datasets(workspace, sparks, [name]) == [Analyzed(name, None)]


def test_only_lake_tables_are_compacted(spark_site: Site, tmp_path: Path) -> None:
    name = new_name("feed")
    with opened(spark_site, project(name, format="parquet"), tmp_path) as workspace:
        sparks = SparkSessions(workspace.site)
        assert compact_datasets(workspace, sparks, None) == []
        with pytest.raises(NotALakeTableError, match="has the format parquet"):
            compact_datasets(workspace, sparks, [name])


def test_statistics_count_rows_files_and_distinct_values(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a"), (2, "a"), (3, "b")])
        (analyzed,) = analyze_datasets(workspace, SparkSessions(workspace.site), [name])
        assert (analyzed.version, analyzed.rows) == (tag, 3)
        assert analyzed.files is not None
        assert analyzed.files >= 1
        assert analyzed.bytes
        assert analyzed.statistics is not None
        # A puffin file ends with a description of what it holds.
        held = Path(analyzed.statistics.removeprefix("file:")).read_bytes()
        start = held.rindex(b"{", 0, held.rindex(b'"blobs"'))
        blobs = json.loads(held[start : held.rindex(b"}") + 1])["blobs"]
        assert [blob["properties"]["ndv"] for blob in blobs] == ["3", "2"]


def test_files_are_counted_as_they_were_published(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name("feed")
    with opened(spark_site, project(name, format="parquet"), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a"), (2, "a")])
        (analyzed,) = analyze_datasets(workspace, SparkSessions(workspace.site), [name])
        assert (analyzed.version, analyzed.rows) == (tag, 2)
        assert analyzed.bytes
