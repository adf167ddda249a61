"""Fixed-width text files: each column has a declared width in characters."""

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, cast

from floe.execution.formats.contract import StoredVersion
from floe.execution.formats.storage import spark_paths, to_spark
from floe.execution.formats.text_files import Layout
from floe.execution.formats.text_format import TextFormat
from floe.execution.formats.text_records import (
    BLOCK,
    CORRUPT,
    FILE,
    Records,
    text_column,
    with_origin,
)
from floe.execution.site import Site
from floe.spec.datasets import Column
from floe.spec.formats import FixedWidthOptions

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

NUMBERS = (
    *("byte", "tinyint", "short", "smallint", "int", "long", "bigint"),
    *("float", "real", "double", "decimal", "numeric", "dec"),
)


class FixedWidthFormat(TextFormat):
    """format: fixed_width"""

    name = "fixed_width"

    def layout(self, version: StoredVersion) -> Layout:
        options = _options(version)
        return Layout(
            encoding=options.encoding,
            compression=options.compression,
            skip_lines=options.skip_lines,
        )

    def write_lines(self, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        from pyspark.sql.connect import functions as F  # noqa: N812

        options = _options(version)
        padded = [_padded(version, column, options) for column in version.spec.columns]
        lines = frame.select(F.concat(*padded).alias("value"))
        writer = lines.write.mode("overwrite").option("compression", options.compression)
        writer.text(to_spark(folder))

    def records(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> Records:
        from pyspark.sql.connect import functions as F  # noqa: N812

        options, columns = _options(version), version.spec.columns
        line = F.col("value")
        total = sum(column.width or 0 for column in columns)
        starts = [0, *accumulate(column.width or 0 for column in columns)]
        fields = [
            _field(line, start + 1, column, options).alias(text_column(index))
            for index, (start, column) in enumerate(zip(starts, columns, strict=False))
        ]
        misfit = (F.length(line) < total) | (F.length(F.rtrim(line)) > total)
        lines = with_origin(spark.read.text(spark_paths(files)))
        # Invalid bytes become the replacement character, as they do in CSV files.
        lines = lines.withColumn("value", F.make_valid_utf8("value"))
        raw = lines.filter(F.length(F.trim(line)) > 0).select(
            *fields, F.when(misfit, line).alias(CORRUPT), FILE, BLOCK, line.alias("value")
        )
        return Records(raw, line, version, columns, options)

    def misfit(self, version: StoredVersion, record: str) -> str:
        wanted = sum(column.width or 0 for column in version.spec.columns)
        return f"it has {len(record)} characters, expected {wanted}"


def _options(version: StoredVersion) -> FixedWidthOptions:
    return cast("FixedWidthOptions", version.spec.format_options)


def _field(
    line: "SparkColumn", start: int, column: Column, options: FixedWidthOptions
) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    text = F.substring(line, start, column.width or 0)
    if options.trim:
        # Zeros stay: padding cannot be told from significant digits.
        filler = options.pad if options.pad not in " 0" else ""
        text = F.trim(text, F.lit(f" {filler}"))
    return F.when(F.trim(text) != F.lit(options.null_value.strip()), text)


def _padded(version: StoredVersion, column: Column, options: FixedWidthOptions) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    width = column.width or 0
    text = F.coalesce(_text(column, options), F.lit(options.null_value))
    complaint = (
        f"A value of {column.name} in '{version.dataset}' is longer than {width} characters: "
    )
    fits = F.when(F.length(text) > width, F.raise_error(F.concat(F.lit(complaint), text)))
    return fits.otherwise(_filled(text, column, options))


def _filled(text: "SparkColumn", column: Column, options: FixedWidthOptions) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    width, pad = column.width or 0, options.pad
    if not column.type.strip().lower().startswith(NUMBERS):
        return F.rpad(text, width, pad)
    filled = F.lpad(text, width, pad)
    if pad != "0":
        return filled
    # The sign stays in front of the zeros.
    negative = F.concat(F.lit("-"), F.lpad(F.substring(text, 2, width), width - 1, pad))
    return F.when(text.startswith("-"), negative).otherwise(filled)


def _text(column: Column, options: FixedWidthOptions) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    value, kind = F.col(f"`{column.name}`"), column.type.strip().lower()
    if kind == "date":
        return F.date_format(value, column.format or options.date_format)
    if kind.startswith("timestamp"):
        return F.date_format(value, column.format or options.timestamp_format)
    return value.cast("string")
