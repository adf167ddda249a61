"""Queries on frames do what pyspark's own do; the pinned version keeps this promise."""

from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.spark.queries import query

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_frames_are_seen_by_their_names_and_parameters_are_bound(spark: "SparkSession") -> None:
    numbers = query(spark, "select id from range(10)")
    joined = query(
        spark,
        "with small as (select id from Numbers where id < :most) "
        "select l.id from large as l join small using (id)",
        {"most": 8},
        {"numbers": numbers, "large": numbers.where("id > 6")},
    )
    assert [row.id for row in joined.collect()] == [7]


def test_rows_are_counted_inside_of_what_a_query_reads(spark: "SparkSession") -> None:
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.connect.observation import Observation

    counter: Any = Observation("rows_passing")
    numbers = query(spark, "select id from range(10)").observe(
        counter, F.count(F.lit(1)).alias("rows")
    )
    total = query(spark, "select sum(id) as total from numbers", frames={"numbers": numbers})
    assert total.collect()[0].total == 45
    assert counter.get == {"rows": 10}


def test_a_view_of_the_server_is_counted_as_well(spark: "SparkSession") -> None:
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
