"""The formats that floe brings, and the options of each.

A format of the user's own registers by entry point; its options are its own business.
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from floe.spec.base import SpecModel
from floe.spec.names import FunctionRef
from floe.spec.values import AnyValue

ENTRY_POINTS = "floe.formats"
DEFAULT_FORMAT = "iceberg"

BadRecords = Literal["fail", "drop"]
Compression = Literal["none", "gzip", "bzip2", "lz4", "snappy", "zstd", "deflate"]
Letter = Annotated[str, Field(min_length=1, max_length=1)]
Count = Annotated[int, Field(ge=0)]
PositiveCount = Annotated[int, Field(ge=1)]


class Options(SpecModel):
    """How a format is read and written. Here a number where text is wanted is that text."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class TextOptions(Options):
    """What every kind of text file has in common."""

    encoding: str = "UTF-8"
    """The character encoding of the files."""
    null_value: str = ""
    """The text that stands for no value."""
    date_format: str = "yyyy-MM-dd"
    """How dates are written, in Spark's letters."""
    timestamp_format: str = "yyyy-MM-dd'T'HH:mm:ss"
    """How timestamps are written, in Spark's letters."""
    compression: Compression = "none"
    """How the files are compressed."""
    bad_records: BadRecords = "fail"
    """What to do with a line that cannot be read: fail the version, or drop and count it."""
    bad_record_samples: Count = 5
    """How many dropped lines to keep as samples."""
    max_bad_records: Count | None = None
    """With `drop`: more dropped lines than this reject the version."""


class CsvOptions(TextOptions):
    """Options of `format: csv`."""

    delimiter: Annotated[str, Field(min_length=1)] = ","
    """What stands between two values."""
    header: bool = True
    """Whether the first line names the columns."""
    quote: Letter = '"'
    """What encloses a value that holds the delimiter."""
    escape: Letter = '"'
    """What stands before a quote inside a value."""
    comment: Letter | None = None
    """Lines that begin with this are skipped."""
    skip_lines: Count = 0
    """How many lines to skip before the header."""
    multiline: bool = False
    """Whether a quoted value may hold line breaks."""


class FixedWidthOptions(TextOptions):
    """Options of `format: fixed_width`; each column of the schema has a width."""

    skip_lines: Count = 0
    """How many lines to skip at the top."""
    trim: bool = True
    """Whether blanks around a value are dropped."""
    pad: Letter = " "
    """What fills a value up to its width when files are written."""


class ParquetOptions(Options):
    """Options of `format: parquet`."""

    compression: Compression = "zstd"
    """How the files are compressed."""
    merge_schema: bool = False
    """Whether files with different columns are read as one."""


class IcebergOptions(Options):
    """Options of `format: iceberg`."""

    partition_by: tuple[str, ...] = ()
    """Hidden partitioning, such as days(traded_at) or bucket(16, id)."""
    sort_by: tuple[str, ...] = ()
    """The columns that rows are sorted by when written."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Table properties, passed on to Iceberg."""


class JdbcOptions(Options):
    """Options of `format: jdbc`: a database table, or an extract by a query."""

    connection: str
    """The connection of platform.yaml to use."""
    table: str | None = None
    """The table to read or write, such as risk.counterparty."""
    query: str | None = None
    """The query whose rows are read, or the .sql file that holds it."""
    partition_column: str | None = None
    """The column by which a read is split into parallel parts."""
    lower_bound: str | None = None
    """The lowest value of the partition column."""
    upper_bound: str | None = None
    """The highest value of the partition column."""
    num_partitions: PositiveCount | None = None
    """How many parallel parts a read has."""
    fetch_size: PositiveCount = 10_000
    """How many rows to fetch at a time."""
    batch_size: PositiveCount = 10_000
    """How many rows to insert at a time."""
    query_timeout_seconds: PositiveCount | None = None
    """When to give up on a statement."""


class FilesOptions(Options):
    """Options of `format: files`: files that only their own reader understands."""

    reader: FunctionRef | None = None
    """The function (spark, paths) → DataFrame that reads them."""
    writer: FunctionRef | None = None
    """The function (dataframe, path) that writes them."""


BUILT_IN: dict[str, type[Options]] = {
    "iceberg": IcebergOptions,
    "parquet": ParquetOptions,
    "csv": CsvOptions,
    "fixed_width": FixedWidthOptions,
    "jdbc": JdbcOptions,
    "files": FilesOptions,
}


@cache
def installed_formats() -> frozenset[str]:
    """Return the names of the formats that installed packages register."""
    return frozenset(entry.name for entry in entry_points(group=ENTRY_POINTS))


def known_formats() -> list[str]:
    """Return every format that a dataset may name here."""
    return sorted({*BUILT_IN, *installed_formats()})


def typed_options(name: str, options: dict[str, AnyValue]) -> Options | dict[str, AnyValue]:
    """Return a built-in format's options as its model; others stay as they were written."""
    model = BUILT_IN.get(name)
    return options if model is None else model.model_validate(options)
