"""Queries whose tables are other frames: nothing is registered, nothing is asked of the server.

pyspark's own `spark.sql(query, **frames)` does the same for names in braces, at the price of a
call to the server for each. A contract test holds this to the version of pyspark that is pinned.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from floe.execution.sql_tables import tables_in

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


def query(
    spark: "SparkSession",
    sql: str,
    params: Mapping[str, Any] | None = None,
    frames: Mapping[str, "DataFrame"] | None = None,
    counters: Sequence[Any] = (),
) -> "DataFrame":
    """Return the frame of a query, its parameters bound and the frames seen by their names.

    The server makes views of the frames while it plans, and drops them again: a frame that is
    itself such a query must not have been given one of the same name. `counters` are observations
    that what the query reads holds somewhere inside.
    """
    from pyspark.sql.connect.dataframe import DataFrame
    from pyspark.sql.connect.functions import lit
    from pyspark.sql.connect.plan import SQL, SubqueryAlias

    class Query(SQL):
        """A query that hands on what is observed in the frames that it reads."""

        @property
        def observations(self) -> dict[str, Any]:
            found = {str(counter._name): counter for counter in counters}
            for view in views:
                found |= view.observations
            return found

    named = {name: lit(value) for name, value in (params or {}).items()}
    views = [SubqueryAlias(frame._plan, name) for name, frame in _named_in(sql, frames)]
    return DataFrame(Query(sql, [], named, views), spark)


def _named_in(sql: str, frames: Mapping[str, Any] | None) -> list[tuple[str, Any]]:
    """The frames that a query names; all of them if it cannot be told."""
    named = tables_in(sql)
    given = (frames or {}).items()
    return [(name, frame) for name, frame in given if not named or name.lower() in named]
