"""Parquet files in version directories."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from floe.execution.formats.contract import (
    BadRecords,
    Delivery,
    DeliveryRejectedError,
    VersionPlace,
)
from floe.execution.formats.differences import column_difference
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.manifests import Reading
from floe.execution.formats.storage import spark_paths, to_spark
from floe.execution.site import Site
from floe.spec.formats import ParquetOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class ParquetFormat(DirectoryFormat):
    """format: parquet"""

    name = "parquet"

    def save(self, site: Site, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        compression = _options(place).compression
        writer = frame.write.mode("overwrite").option("compression", compression)
        writer.parquet(to_spark(folder))

    def load(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        frame = self._frame(spark, place, files)
        return _as_declared(frame, place) if place.details.get("delivered") else frame

    def verify(
        self, site: Site, spark: "SparkSession", place: VersionPlace, delivery: Delivery
    ) -> Delivery:
        # Spark skips empty files and fills columns that a file lacks with nulls, without a word.
        _check_footers(place, [Path(file["path"]) for file in delivery.details["files"]])
        return super().verify(site, spark, place, delivery)

    def bad_records(self, site: Site, spark: "SparkSession", place: VersionPlace) -> BadRecords:
        """Read every value once: a check that only counts rows would not notice a damaged page."""
        if not place.details.get("delivered"):
            return BadRecords()
        frame = self._frame(spark, place, self.files(site, place))
        if reason := _first_misfit(frame, place):
            raise DeliveryRejectedError(place.dataset, reason)
        return BadRecords()

    def _frame(
        self, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        merge = str(_options(place).merge_schema).lower()
        return spark.read.option("mergeSchema", merge).parquet(*spark_paths(files))

    def reading(self, place: VersionPlace) -> Reading:
        return Reading(count_rows=_count_rows)


def _options(place: VersionPlace) -> ParquetOptions:
    return cast("ParquetOptions", place.spec.format_options)


def _first_misfit(frame: "DataFrame", place: VersionPlace) -> str:
    """Name a value that is not of the declared type, if there is one."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    declared = {column.name.lower(): column.type for column in place.spec.columns}
    file = F.col("_metadata.file_name")
    measures = []
    for index, field in enumerate(frame.schema.fields):
        value = F.col(f"`{field.name.replace('`', '``')}`")
        kind = declared.get(field.name.lower())
        measures.append(F.count(value).alias(f"n{index}"))
        if kind is None or kind.strip().lower() == field.dataType.simpleString():
            continue
        wrong = value.isNotNull() & value.try_cast(kind).isNull()
        words = F.lit(f"' is not a {kind} (column {field.name})")
        told = F.concat(file, F.lit(": '"), F.substring(value.cast("string"), 1, 80), words)
        measures.append(F.max(F.when(wrong, told)).alias(f"m{index}"))
    (row,) = frame.agg(*measures).collect()
    return next((text for text in row.asDict().values() if isinstance(text, str)), "")


def _check_footers(place: VersionPlace, files: Sequence[Path]) -> None:
    """Refuse what is not Parquet, and files whose columns differ."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import read_schema  # type: ignore[import-untyped]

    wanted: Sequence[str] = place.spec.column_names
    for path in files:
        try:
            names = [str(name) for name in read_schema(path).names]
        except pa.ArrowException as error:
            empty = path.stat().st_size == 0
            said = "is empty" if empty else "is not a Parquet file, or it was cut off"
            raise DeliveryRejectedError(place.dataset, f"{path.name} {said}.") from error
        wanted = wanted or names
        difference = column_difference(wanted, names)
        if difference and not _options(place).merge_schema:
            reason = f"the columns of {path.name} differ: {difference}."
            raise DeliveryRejectedError(place.dataset, reason)


def _count_rows(path: Path) -> int:
    from pyarrow.parquet import read_metadata

    return int(read_metadata(path).num_rows)


def _as_declared(frame: "DataFrame", place: VersionPlace) -> "DataFrame":
    """Give what others wrote the columns that were declared, in their order and types."""
    if not place.spec.columns:
        return frame
    difference = column_difference(place.spec.column_names, frame.columns)
    if difference:
        raise DeliveryRejectedError(place.dataset, f"its columns differ: {difference}.")
    return frame.select(
        *(frame[column.name].cast(column.type).alias(column.name) for column in place.spec.columns)
    )
