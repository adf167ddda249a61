"""CSV files, read and written by the declared schema."""

import csv
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from floe.execution.formats.contract import DeliveryRejectedError, StoredVersion, column_difference
from floe.execution.formats.storage import spark_paths, to_spark
from floe.execution.formats.text_files import Layout, first_record
from floe.execution.formats.text_format import TextFormat
from floe.execution.formats.text_records import (
    CORRUPT,
    NOT_SPLIT,
    Records,
    formatted,
    text_column,
    with_origin,
)
from floe.execution.site import Site
from floe.spec.datasets import Column
from floe.spec.formats import CsvOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class CsvFormat(TextFormat):
    """format: csv"""

    name = "csv"
    ending = ".csv"

    def layout(self, version: StoredVersion) -> Layout:
        options = _options(version)
        return Layout(
            encoding=options.encoding,
            compression=options.compression,
            skip_lines=options.skip_lines,
            header=options.header,
            comment=options.comment,
            quote=options.quote,
            escape=options.escape,
            multiline=options.multiline,
        )

    def delimiter(self, version: StoredVersion) -> str:
        return _options(version).delimiter

    def misfit(self, version: StoredVersion, record: str) -> str:
        options, wanted = _options(version), len(version.spec.columns)
        count = len(split_header(record, options))
        if not wanted or count == wanted:
            return NOT_SPLIT
        return f"it has {count} field{'' if count == 1 else 's'}, expected {wanted}"

    def write_lines(self, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        options = _options(version)
        settings: dict[str, Any] = {
            **_dialect(options),
            "compression": options.compression,
            "dateFormat": options.date_format,
            "timestampFormat": options.timestamp_format,
            # Spark drops blanks around values by default.
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
        }
        writer = formatted(frame, version.spec.columns).write.mode("overwrite")
        writer.options(**settings).csv(to_spark(folder))

    def records(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> Records:
        from pyspark.sql.connect import functions as F  # noqa: N812

        options = _options(version)
        columns = version.spec.columns or _inferred(spark, options, files)
        names = tuple(column.name for column in columns)
        orders: dict[tuple[int, ...], list[Path]] = {}
        for path in files:
            orders.setdefault(_order(version, path, names), []).append(path)
        frames = [_read_text(spark, options, order, same) for order, same in orders.items()]
        texts = [F.coalesce(F.col(text_column(i)), F.lit("")) for i in range(len(columns))]
        line = F.coalesce(F.col(CORRUPT), F.concat_ws(options.delimiter, *texts))
        raw = reduce(lambda left, right: left.unionByName(right), frames)
        return Records(raw, line, version, columns, options)


def _options(version: StoredVersion) -> CsvOptions:
    return cast("CsvOptions", version.spec.format_options)


def _dialect(options: CsvOptions) -> dict[str, Any]:
    settings = {
        "sep": options.delimiter,
        "header": str(options.header).lower(),
        "quote": options.quote,
        "escape": options.escape,
        "nullValue": options.null_value,
        "encoding": "UTF-8",
    }
    return settings | ({"comment": options.comment} if options.comment else {})


def _read_text(
    spark: "SparkSession", options: CsvOptions, order: Sequence[int], files: Sequence[Path]
) -> "DataFrame":
    """Read files whose fields are in the given column order."""
    schema = ", ".join([*(f"{text_column(index)} string" for index in order), f"{CORRUPT} string"])
    settings = {
        **_dialect(options),
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "multiLine": str(options.multiline).lower(),
    }
    frame = spark.read.options(**settings).schema(schema).csv(spark_paths(files))
    return with_origin(frame)


def _order(version: StoredVersion, path: Path, names: Sequence[str]) -> tuple[int, ...]:
    """Return the declared column index of each field of a file, from its header."""
    options = _options(version)
    if not options.header or not version.details.get("delivered"):
        return tuple(range(len(names)))
    first = first_record(path, Layout(comment=options.comment))
    if first is None:
        raise DeliveryRejectedError(version.dataset, f"{path.name} is empty: it has no header.")
    names_in_file = split_header(first, options)
    if difference := column_difference(names, names_in_file):
        reason = f"the header of {path.name} differs from the schema: {difference}."
        raise DeliveryRejectedError(version.dataset, reason)
    index = {name.lower(): position for position, name in enumerate(names)}
    return tuple(index[name.lower()] for name in names_in_file)


def split_header(line: str, options: CsvOptions) -> list[str]:
    """Split a header into column names."""
    if len(options.delimiter) > 1:
        return [name.strip().strip(options.quote) for name in line.split(options.delimiter)]
    fields = next(csv.reader([line], delimiter=options.delimiter, quotechar=options.quote))
    return [name.strip() for name in fields]


def _inferred(
    spark: "SparkSession", options: CsvOptions, files: Sequence[Path]
) -> tuple[Column, ...]:
    """Let Spark infer the columns of files without a declared schema."""
    settings = {
        **_dialect(options),
        "inferSchema": "true",
        "dateFormat": options.date_format,
        "timestampFormat": options.timestamp_format,
        "multiLine": str(options.multiline).lower(),
    }
    schema = spark.read.options(**settings).csv(spark_paths(files)).schema
    return tuple(
        Column(name=field.name, type=_known(field.dataType.simpleString()))
        for field in schema.fields
    )


def _known(kind: str) -> str:
    return "string" if kind == "void" else kind
