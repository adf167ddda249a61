"""Spark returns the columns that were traced from the SQL, in the same order."""

from typing import TYPE_CHECKING

import pytest

from floe.execution.column_lineage import SqlStep, trace
from tests.execution.column_lineage.examples import EXAMPLES, INPUTS

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


@pytest.fixture
def lake(spark: "SparkSession") -> "SparkSession":
    """A session with the inputs of the examples, without rows."""
    for alias, columns in INPUTS.items():
        schema = ", ".join(f"{column.name} {column.type}" for column in columns)
        spark.createDataFrame([], schema).createOrReplaceTempView(alias)
    return spark


def test_spark_returns_the_columns_of_the_examples(lake: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    wrong = []
    for example in EXAMPLES:
        result = trace([SqlStep("out", example.sql)], INPUTS, {"out": ()})["out"]
        try:
            columns = lake.sql(example.sql, args={"rate": 1}).columns
        except PySparkException as error:
            columns = [str(error).split("JVM")[0]]
        if columns != list(result.columns):
            wrong.append((example.name, columns, list(result.columns)))
    assert wrong == []
