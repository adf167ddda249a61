"""What Spark says of a frame before it computes it."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

FIELDS = "spark.sql.debug.maxToStringFields"
ALL_FIELDS = "100000"


def explain(spark: "SparkSession", frame: "DataFrame") -> str:
    """Return what EXPLAIN EXTENDED says of a frame, with all columns of wide tables."""
    spark.conf.set(FIELDS, ALL_FIELDS)
    try:
        # The public method prints it.
        connected: Any = frame
        return str(connected._explain_string(extended=True))
    finally:
        spark.conf.unset(FIELDS)
