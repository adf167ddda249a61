"""Parquet files in version directories."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from floe.execution.formats.contract import (
    BadRecords,
    Delivery,
    DeliveryRejectedError,
    StoredVersion,
    column_difference,
)
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

    def save(self, site: Site, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        compression = _options(version).compression
        writer = frame.write.mode("overwrite").option("compression", compression)
        writer.parquet(to_spark(folder))

    def load(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> "DataFrame":
        frame = self._frame(spark, version, files)
        return _as_declared(frame, version) if version.details.get("delivered") else frame

    def verify(
        self, site: Site, spark: "SparkSession", version: StoredVersion, delivery: Delivery
    ) -> Delivery:
        # Spark silently skips empty files and fills missing columns with nulls.
        _check_footers(version, [Path(file["path"]) for file in delivery.details["files"]])
        return super().verify(site, spark, version, delivery)

    def bad_records(self, site: Site, spark: "SparkSession", version: StoredVersion) -> BadRecords:
        """Read every value once: counting rows would not detect a damaged page."""
        if not version.details.get("delivered"):
            return BadRecords()
        frame = self._frame(spark, version, self.files(site, version))
        if reason := _first_misfit(frame, version):
            raise DeliveryRejectedError(version.dataset, reason)
        return BadRecords()

    def _frame(
        self, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> "DataFrame":
        merge = str(_options(version).merge_schema).lower()
        return spark.read.option("mergeSchema", merge).parquet(*spark_paths(files))

    def reading(self, version: StoredVersion) -> Reading:
        return Reading(count_rows=_count_rows)


def _options(version: StoredVersion) -> ParquetOptions:
    return cast("ParquetOptions", version.spec.format_options)


def _first_misfit(frame: "DataFrame", version: StoredVersion) -> str:
    """Return a message about a value of the wrong type, or an empty string."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    declared = {column.name.lower(): column.type for column in version.spec.columns}
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
        message = F.concat(file, F.lit(": '"), F.substring(value.cast("string"), 1, 80), words)
        measures.append(F.max(F.when(wrong, message)).alias(f"m{index}"))
    (row,) = frame.agg(*measures).collect()
    return next((text for text in row.asDict().values() if isinstance(text, str)), "")


def _check_footers(version: StoredVersion, files: Sequence[Path]) -> None:
    """Raise for files that are not Parquet or whose columns differ."""
    import pyarrow as pa  # type: ignore[import-untyped]
    from pyarrow.parquet import read_schema  # type: ignore[import-untyped]

    wanted: Sequence[str] = version.spec.column_names
    for path in files:
        try:
            names = [str(name) for name in read_schema(path).names]
        except pa.ArrowException as error:
            empty = path.stat().st_size == 0
            problem = "is empty" if empty else "is not a Parquet file, or is truncated"
            raise DeliveryRejectedError(version.dataset, f"{path.name} {problem}.") from error
        wanted = wanted or names
        difference = column_difference(wanted, names)
        if difference and not _options(version).merge_schema:
            reason = f"the columns of {path.name} differ: {difference}."
            raise DeliveryRejectedError(version.dataset, reason)


def _count_rows(path: Path) -> int:
    from pyarrow.parquet import read_metadata

    return int(read_metadata(path).num_rows)


def _as_declared(frame: "DataFrame", version: StoredVersion) -> "DataFrame":
    """Return delivered data with the declared columns, in declared order and types."""
    if not version.spec.columns:
        return frame
    difference = column_difference(version.spec.column_names, frame.columns)
    if difference:
        raise DeliveryRejectedError(version.dataset, f"its columns differ: {difference}.")
    return frame.select(
        *(
            frame[column.name].cast(column.type).alias(column.name)
            for column in version.spec.columns
        )
    )
