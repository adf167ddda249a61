"""Sessions: one for each run, apart from each other."""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_a_lake_table_is_written_and_read(spark: "SparkSession") -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS sessions")
    spark.sql("CREATE OR REPLACE TABLE sessions.t AS SELECT 1 AS id")
    assert spark.table("sessions.t").collect()[0].id == 1
