"""Queries on frames work like pyspark's own, with the pinned version of pyspark."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.spark.clients import MAX_CLAUSES
from floe.execution.spark.queries import explain, query
from floe.execution.spark.server import ensure_server, stop_server
from floe.execution.spark.session import close_session, open_session
from tests.execution.sites import make_site

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_a_query_uses_frames_by_name_and_bound_parameters(spark: "SparkSession") -> None:
    numbers = query(spark, "select id from range(10)")
    joined = query(
        spark,
        "with small as (select id from Numbers where id < :most) "
        "select l.id from large as l join small using (id)",
        {"most": 8},
        {"numbers": numbers, "large": numbers.where("id > 6")},
    )
    assert [row.id for row in joined.collect()] == [7]


def test_rows_of_a_frame_are_counted_while_a_query_reads_it(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.connect.observation import Observation

    counter: Any = Observation("rows_passing")
    numbers = query(spark, "select id from range(10)").observe(
        counter, F.count(F.lit(1)).alias("rows")
    )
    total = query(spark, "select sum(id) as total from numbers", frames={"numbers": numbers})
    assert total.collect()[0].total == 45
    assert counter.get == {"rows": 10}


def test_rows_of_a_view_are_counted_while_a_query_reads_it(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.connect.observation import Observation

    counter: Any = Observation("rows_of_view")
    numbers = query(spark, "select id from range(10)").observe(
        counter, F.count(F.lit(1)).alias("rows")
    )
    numbers.createOrReplaceTempView("floe_numbers")
    total = query(spark, "select sum(id) as total from floe_numbers", counters=[counter])
    assert total.collect()[0].total == 45
    assert counter.get == {"rows": 10}


def test_ids_of_with_clauses_start_above_those_of_any_query(tmp_path: Path) -> None:
    site = make_site(tmp_path)
    spark = open_session(site, ensure_server(site))
    try:
        explained = explain(spark, query(spark, "WITH one AS (SELECT 1) SELECT * FROM one"))
    finally:
        close_session(spark)
        stop_server(site)
    clause_ids = [int(text) for text in re.findall(r"CTERelationDef (\d+)", explained)]
    assert clause_ids
    assert min(clause_ids) >= MAX_CLAUSES
