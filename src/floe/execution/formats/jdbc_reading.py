"""Read a database over JDBC: all at once or in parallel parts, in the declared types."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from floe.execution.databases import jdbc_address
from floe.execution.formats.contract import DeliveryRejectedError, VersionPlace
from floe.execution.formats.differences import column_difference
from floe.execution.site import Site
from floe.spec.formats import JdbcOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

DRIVERS = {"jdbc:sqlite:": "org.sqlite.JDBC", "jdbc:postgresql:": "org.postgresql.Driver"}
PARTS = 8
"""Into how many parts a read is split when nobody says."""


def jdbc_options(place: VersionPlace) -> JdbcOptions:
    """Return the options of a dataset in a database."""
    return cast("JdbcOptions", place.spec.format_options)


def is_sqlite(site: Site, place: VersionPlace) -> bool:
    """Tell whether a dataset lives in SQLite, where every value has a type of its own."""
    return jdbc_address(site, jdbc_options(place).connection).startswith("jdbc:sqlite:")


def connection_settings(site: Site, place: VersionPlace) -> dict[str, str]:
    """Return what Spark needs to open the database. User and password never enter the address."""
    name = jdbc_options(place).connection
    connection, address = site.connection(name), jdbc_address(site, name)
    known = next((driver for kind, driver in DRIVERS.items() if address.startswith(kind)), None)
    settings: dict[str, Any] = {
        "url": address,
        "driver": connection.driver or known,
        "user": connection.user,
        "password": connection.password and site.reveal(connection.password),
        **{key: site.reveal(value) for key, value in connection.options.items()},
    }
    return {key: str(value) for key, value in settings.items() if value is not None}


def source_of(site: Site, place: VersionPlace) -> str:
    """Return the table of a dataset, or its query as something to select from."""
    options = jdbc_options(place)
    if options.query is None:
        return str(options.table)
    return f"({site.read_text(options.query).strip().rstrip(';')}) floe_extract"


def read_source(site: Site, spark: "SparkSession", place: VersionPlace, source: str) -> "DataFrame":
    """Read a table or a query."""
    settings = {
        **connection_settings(site, place),
        **_pace(jdbc_options(place)),
        **_parts(site, spark, place, source),
    }
    if is_sqlite(site, place) and place.spec.columns:
        # Its driver guesses types from the first row, and fails on a date that is text.
        names = ", ".join(f"`{name}` string" for name in place.spec.column_names)
        settings["customSchema"] = names
    frame = spark.read.format("jdbc").options(**settings, dbtable=source).load()
    return _as_declared(frame, place)


def _pace(options: JdbcOptions) -> dict[str, str]:
    pace = {"fetchsize": str(options.fetch_size)}
    if options.query_timeout_seconds is not None:
        pace["queryTimeout"] = str(options.query_timeout_seconds)
    return pace


def _parts(
    site: Site, spark: "SparkSession", place: VersionPlace, source: str
) -> Mapping[str, str]:
    """Say how a read is split; bounds that nobody gave are asked for."""
    options = jdbc_options(place)
    if options.partition_column is None:
        return {}
    low, high = options.lower_bound, options.upper_bound
    if low is None or high is None:
        least, most = _bounds(site, spark, place, source, options.partition_column)
        low, high = (least if low is None else low), (most if high is None else high)
    if low is None or high is None:
        # No rows, or nothing but nulls: there is nothing to split.
        return {}
    return {
        "partitionColumn": options.partition_column,
        "lowerBound": low,
        "upperBound": high,
        "numPartitions": str(options.num_partitions or PARTS),
    }


def _bounds(
    site: Site, spark: "SparkSession", place: VersionPlace, source: str, column: str
) -> tuple[str | None, str | None]:
    asked = f"(SELECT min({column}) AS low, max({column}) AS high FROM {source}) floe_bounds"  # noqa: S608
    settings = {**connection_settings(site, place), **_pace(jdbc_options(place))}
    found = spark.read.format("jdbc").options(**settings, dbtable=asked).load().collect()[0]
    low, high = (None if value is None else str(value) for value in (found[0], found[1]))
    return low, high


def _as_declared(frame: "DataFrame", place: VersionPlace) -> "DataFrame":
    columns = place.spec.columns
    if not columns:
        return frame
    wanted = [column.name.lower() for column in columns]
    found = [name for name in frame.columns if name.lower() in wanted]
    if difference := column_difference([column.name for column in columns], found):
        reason = f"its columns differ from the schema: {difference}."
        raise DeliveryRejectedError(place.dataset, reason)
    return frame.select(
        *(frame[column.name].cast(column.type).alias(column.name) for column in columns)
    )
