"""Make the table of a dataset fit what is about to be written: create it, or change its columns.

A version is read with the columns that its snapshot has, so old versions keep theirs. Only those
who read the bare table see a change at once.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.iceberg.tables import LakeTable, quoted, text
from floe.spec.formats import IcebergOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

TRIES = 3
WIDER = {("int", "bigint"), ("float", "double")}

Columns = Sequence[tuple[str, str]]


def fit_table(
    spark: "SparkSession", table: LakeTable, place: VersionPlace, frame: "DataFrame"
) -> "DataFrame":
    """Create or change the table; return the frame with every column that the table has."""
    wanted = columns_of(frame)
    found = _columns_of_table(spark, table)
    if found is None:
        _create(spark, table, place, wanted)
        return frame
    for change in changes(found, wanted):
        spark.sql(f"ALTER TABLE {table.sql} {change}").collect()
    return _completed(frame, found, wanted)


def columns_of(frame: "DataFrame") -> list[tuple[str, str]]:
    """Return the names and types of a frame's columns."""
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def changes(found: Columns, wanted: Columns) -> Iterator[str]:
    """Say how a table's columns have to be changed before these can be written."""
    known = {name.lower(): kind for name, kind in found}
    for name, kind in wanted:
        before = known.get(name.lower())
        if before is None:
            yield f"ADD COLUMN {quoted(name)} {kind}"
        elif before != kind and is_wider(before, kind):
            yield f"ALTER COLUMN {quoted(name)} TYPE {kind}"
        elif before != kind:
            # A new column under the old name: what was written before keeps its own.
            yield f"DROP COLUMN {quoted(name)}"
            yield f"ADD COLUMN {quoted(name)} {kind}"


def is_wider(before: str, after: str) -> bool:
    """Tell whether every value of the one type has its place in the other."""
    if (before, after) in WIDER:
        return True
    old, new = _decimal(before), _decimal(after)
    return old is not None and new is not None and old[1] == new[1] and old[0] < new[0]


def _decimal(kind: str) -> tuple[int, int] | None:
    if not kind.startswith("decimal("):
        return None
    precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
    return int(precision), int(scale)


def _columns_of_table(spark: "SparkSession", table: LakeTable) -> Columns | None:
    from pyspark.errors import AnalysisException

    try:
        return columns_of(spark.table(table.sql))
    except AnalysisException as error:
        if error.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
            return None
        raise


def _create(spark: "SparkSession", table: LakeTable, place: VersionPlace, columns: Columns) -> None:
    options = place.spec.format_options
    assert isinstance(options, IcebergOptions)
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    parts = [*options.partition_by]
    if place.spec.partition_column is not None:
        parts.insert(0, quoted(place.spec.partition_column))
    split = f" PARTITIONED BY ({', '.join(parts)})" if parts else ""
    properties = {"write.wap.enabled": "true", **options.properties}
    noted = ", ".join(f"{text(key)} = {text(value)}" for key, value in properties.items())
    _create_namespace(spark, table)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table.sql} ({listed}) USING iceberg{split} "
        f"TBLPROPERTIES ({noted})"
    ).collect()


def _create_namespace(spark: "SparkSession", table: LakeTable) -> None:
    from pyspark.errors import PySparkException

    for attempt in range(1, TRIES + 1):
        try:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.namespace}").collect()
        except PySparkException:
            # Two who find it missing both create it, and the catalog refuses the second.
            if attempt == TRIES:
                raise
        else:
            return


def _completed(frame: "DataFrame", found: Columns, wanted: Columns) -> "DataFrame":
    """Add the columns that the table has and the frame lacks, without a value."""
    from pyspark.sql import functions as F  # noqa: N812 - what all of Spark's users call it

    has = {name.lower() for name, _ in wanted}
    for name, kind in found:
        if name.lower() not in has:
            frame = frame.withColumn(name, F.lit(None).cast(kind))
    return frame
