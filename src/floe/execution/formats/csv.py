"""CSV files, read and written by the declared schema."""

import csv
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from floe.execution.formats.contract import DeliveryRejectedError, VersionPlace
from floe.execution.formats.differences import column_difference
from floe.execution.formats.records import (
    CORRUPT,
    NOT_SPLIT,
    Records,
    formatted,
    text_column,
    with_place,
)
from floe.execution.formats.storage import spark_paths, to_spark
from floe.execution.formats.text import Layout, first_record
from floe.execution.formats.text_format import TextFormat
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

    def layout(self, place: VersionPlace) -> Layout:
        options = _options(place)
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

    def delimiter(self, place: VersionPlace) -> str:
        return _options(place).delimiter

    def misfit(self, place: VersionPlace, record: str) -> str:
        options, wanted = _options(place), len(place.spec.columns)
        found = len(split_header(record, options))
        if not wanted or found == wanted:
            return NOT_SPLIT
        return f"it has {found} field{'' if found == 1 else 's'}, expected {wanted}"

    def write_lines(self, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        options = _options(place)
        settings: dict[str, Any] = {
            **_dialect(options),
            "compression": options.compression,
            "dateFormat": options.date_format,
            "timestampFormat": options.timestamp_format,
            # Spark drops blanks around values unless told not to.
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
        }
        writer = formatted(frame, place.spec.columns).write.mode("overwrite")
        writer.options(**settings).csv(to_spark(folder))

    def records(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> Records:
        from pyspark.sql.connect import functions as F  # noqa: N812

        options = _options(place)
        columns = place.spec.columns or _inferred(spark, options, files)
        names = tuple(column.name for column in columns)
        orders: dict[tuple[int, ...], list[Path]] = {}
        for path in files:
            orders.setdefault(_order(place, path, names), []).append(path)
        frames = [_read_text(spark, options, order, same) for order, same in orders.items()]
        texts = [F.coalesce(F.col(text_column(i)), F.lit("")) for i in range(len(columns))]
        line = F.coalesce(F.col(CORRUPT), F.concat_ws(options.delimiter, *texts))
        raw = reduce(lambda one, other: one.unionByName(other), frames)
        return Records(raw, line, place, columns, options)


def _options(place: VersionPlace) -> CsvOptions:
    return cast("CsvOptions", place.spec.format_options)


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
    """Read files whose fields stand in this order of the columns."""
    schema = ", ".join([*(f"{text_column(index)} string" for index in order), f"{CORRUPT} string"])
    settings = {
        **_dialect(options),
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": CORRUPT,
        "multiLine": str(options.multiline).lower(),
    }
    frame = spark.read.options(**settings).schema(schema).csv(spark_paths(files))
    return with_place(frame)


def _order(place: VersionPlace, path: Path, names: Sequence[str]) -> tuple[int, ...]:
    """Return which declared column each field of a file is, as its header says."""
    options = _options(place)
    if not options.header or not place.details.get("delivered"):
        return tuple(range(len(names)))
    first = first_record(path, Layout(comment=options.comment))
    if first is None:
        raise DeliveryRejectedError(place.dataset, f"{path.name} is empty: it has no header.")
    found = split_header(first, options)
    if difference := column_difference(names, found):
        reason = f"the header of {path.name} differs from the schema: {difference}."
        raise DeliveryRejectedError(place.dataset, reason)
    index = {name.lower(): number for number, name in enumerate(names)}
    return tuple(index[name.lower()] for name in found)


def split_header(line: str, options: CsvOptions) -> list[str]:
    """Split a header into the names of columns."""
    if len(options.delimiter) > 1:
        return [name.strip().strip(options.quote) for name in line.split(options.delimiter)]
    fields = next(csv.reader([line], delimiter=options.delimiter, quotechar=options.quote))
    return [name.strip() for name in fields]


def _inferred(
    spark: "SparkSession", options: CsvOptions, files: Sequence[Path]
) -> tuple[Column, ...]:
    """Let Spark guess the columns of files that nobody described."""
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
