"""Spark gives the columns that the SQL was said to give, in that order."""

from typing import TYPE_CHECKING

import pytest

from floe.execution.column_lineage import SqlStep, trace
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def lake(spark: "SparkSession") -> "SparkSession":
    """A session that sees the inputs of the examples, without a row."""
    for alias, columns in INPUTS.items():
        schema = ", ".join(f"{column.name} {column.type}" for column in columns)
        spark.createDataFrame([], schema).createOrReplaceTempView(alias)
    return spark


def test_the_examples_have_the_columns_that_spark_gives_them(lake: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    wrong = []
    for example in EXAMPLES:
        found = trace([SqlStep("out", example.sql)], INPUTS, {"out": ()})["out"]
        try:
            columns = lake.sql(example.sql, args={"rate": 1}).columns
        except PySparkException as error:
            columns = [str(error).split("JVM")[0]]
        if columns != list(found.columns):
            wrong.append((example.name, columns, list(found.columns)))
    assert wrong == []
