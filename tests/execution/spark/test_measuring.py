"""What the operators of a query measured is added up under one name each."""

from floe.execution.spark.measuring import sum_up


def test_files_of_spark_and_of_iceberg_are_both_files() -> None:
    measured = [("numFiles", 2), ("resultDataFiles", 3), ("spillSize", 0), ("avgHashProbe", 9)]
    assert sum_up(measured) == {"filesRead": 5, "spillBytes": 0}
