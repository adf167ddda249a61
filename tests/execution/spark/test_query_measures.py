"""Metrics of a query's operators are added up by name."""

from floe.execution.spark.queries import sum_up


def test_metrics_of_spark_and_iceberg_are_added_up() -> None:
    measured = [("numFiles", 2), ("resultDataFiles", 3), ("spillSize", 0), ("avgHashProbe", 9)]
    assert sum_up(measured) == {"filesRead": 5, "spillBytes": 0}
