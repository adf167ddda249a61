"""Queries whose tables are other frames: nothing is registered, nothing is asked of the server.

pyspark's own `spark.sql(query, **frames)` does the same for names in braces, at the price of a
call to the server for each. A contract test holds this to the version of pyspark that is pinned.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


def query(
    spark: "SparkSession",
    sql: str,
    params: Mapping[str, Any] | None = None,
    frames: Mapping[str, "DataFrame"] | None = None,
) -> "DataFrame":
    """Return the frame of a query, its parameters bound and the frames seen by their names."""
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.functions import lit
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    named = {name: lit(value) for name, value in (params or {}).items()}
    given: Mapping[str, Any] = frames or {}
    views = [SubqueryAlias(frame._plan, name) for name, frame in given.items()]
    return DataFrame(SQL(sql, [], named, views), spark)
