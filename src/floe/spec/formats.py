"""The built-in formats and their options.

Plug-in formats register by entry point and validate their own options.
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
DEFAULT_TIMESTAMP_FORMAT = "yyyy-MM-dd'T'HH:mm:ss"


class Options(SpecModel):
    """Options of a format. A number is accepted where text is expected."""

    model_config = ConfigDict(coerce_numbers_to_str=True)


class TextOptions(Options):
    """The options that all kinds of text files have in common."""

    encoding: str = "UTF-8"
    """Character encoding of the files."""
    null_value: str = ""
    """Text that represents null."""
    date_format: str = "yyyy-MM-dd"
    """Date format, as a Spark pattern."""
    timestamp_format: str = DEFAULT_TIMESTAMP_FORMAT
    """Timestamp format, as a Spark pattern. By default floe also accepts a space instead of
    the T, fractions of a second, and a zone."""
    compression: Compression = "none"
    """Compression of the files."""
    bad_records: BadRecords = "fail"
    """What to do with an invalid line: fail the version, or drop and count the line."""
    bad_record_samples: Count = 5
    """Number of dropped lines to keep as samples."""
    max_bad_records: Count | None = None
    """With `drop`: reject the version if more lines than this are dropped."""


class CsvOptions(TextOptions):
    """Options of `format: csv`."""

    delimiter: Annotated[str, Field(min_length=1)] = ","
    """Delimiter between values."""
    header: bool = True
    """Whether the first line contains the column names."""
    quote: Letter = '"'
    """Quote character for values that contain the delimiter."""
    escape: Letter = '"'
    """Escape character before a quote inside a value."""
    comment: Letter | None = None
    """Skip lines that start with this character."""
    skip_lines: Count = 0
    """Number of lines to skip before the header."""
    multiline: bool = False
    """Whether quoted values may contain line breaks."""


class FixedWidthOptions(TextOptions):
    """Options of `format: fixed_width`; each column of the schema has a width."""

    skip_lines: Count = 0
    """Number of lines to skip at the top of a file."""
    trim: bool = True
    """Whether to strip spaces around values."""
    pad: Letter = " "
    """Character that pads values to their width when writing."""


class ParquetOptions(Options):
    """Options of `format: parquet`."""

    compression: Compression = "zstd"
    """Compression of the files."""
    merge_schema: bool = False
    """Whether to merge the schemas of files with different columns."""


class IcebergOptions(Options):
    """Options of `format: iceberg`."""

    partition_by: tuple[str, ...] = ()
    """Hidden partitioning, such as days(traded_at) or bucket(16, id)."""
    sort_by: tuple[str, ...] = ()
    """Columns by which rows are sorted on write."""
    properties: dict[str, str] = Field(default_factory=dict)
    """Table properties, passed to Iceberg."""


class JdbcOptions(Options):
    """Options of `format: jdbc`: a database table or the result of a query."""

    connection: str
    """Connection in platform.yaml."""
    table: str | None = None
    """Table to read or write, such as risk.counterparty."""
    query: str | None = None
    """Query to read from, or its .sql file."""
    partition_column: str | None = None
    """Column by which a read is split into parallel parts."""
    lower_bound: str | None = None
    """Lowest value of the partition column."""
    upper_bound: str | None = None
    """Highest value of the partition column."""
    num_partitions: PositiveCount | None = None
    """Number of parallel parts of a read."""
    fetch_size: PositiveCount = 10_000
    """Number of rows to fetch at a time."""
    batch_size: PositiveCount = 10_000
    """Number of rows to insert at a time."""
    query_timeout_seconds: PositiveCount | None = None
    """Timeout of a statement, in seconds."""


class FilesOptions(Options):
    """Options of `format: files`: files with a custom reader and writer."""

    reader: FunctionRef | None = None
    """Function (spark, paths) → DataFrame that reads the files."""
    writer: FunctionRef | None = None
    """Function (dataframe, path) that writes the files."""


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
    """Return the names of the formats registered by installed packages."""
    return frozenset(entry.name for entry in entry_points(group=ENTRY_POINTS))


def known_formats() -> list[str]:
    """Return the names of all available formats."""
    return sorted({*BUILT_IN, *installed_formats()})


def typed_options(name: str, options: dict[str, AnyValue]) -> Options | dict[str, AnyValue]:
    """Return a built-in format's options as its model; others unchanged."""
    model = BUILT_IN.get(name)
    return options if model is None else model.model_validate(options)
