"""Convert lines of text to typed rows, and handle records that cannot be read.

All columns are read as text and converted here, so that a bad value is reported with its column
and each column can have its own format.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from floe.execution.formats.contract import BadRecords, DeliveryRejectedError, StoredVersion
from floe.spec.datasets import Column
from floe.spec.formats import DEFAULT_TIMESTAMP_FORMAT, TextOptions

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

CORRUPT = "_corrupt"
FILE, BLOCK, NUMBER = "_floe_file", "_floe_block", "_floe_number"
REASON = "_floe_reason"
LINE = "_floe_line"
LONGEST_SAMPLE = 500
MAX_LISTED = 3
REPLACEMENT = "\ufffd"
"""What Spark substitutes for invalid bytes."""
NOT_SPLIT = "it does not have the declared fields"


def with_origin(frame: "DataFrame") -> "DataFrame":
    """Add the source file and the block within it to each line."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    file, block = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    return frame.select("*", file.alias(FILE), block.alias(BLOCK))


def text_column(index: int) -> str:
    """Return the name of a declared column while it is still text."""
    return f"c{index}"


@dataclass(frozen=True)
class Records:
    """The records of text files: typed rows, and bad records with their reasons."""

    raw: "DataFrame"
    """The text of each column, the lines that could not be split, and their origin."""
    line: "SparkColumn"
    version: StoredVersion
    columns: Sequence[Column]
    options: TextOptions
    locate: "Locate" = lambda records: [None for _ in records]
    """Returns file, line and reason of bad records."""

    def rows(self) -> "DataFrame":
        """Return the good rows. With `bad_records: fail` a bad record fails the query."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        reason = F.col(REASON)
        frame = self._typed(self.raw)
        if self.options.bad_records == "drop":
            good = frame.filter(reason.isNull())
        else:
            prefix = F.lit(f"A record of '{self.version.dataset}' cannot be read: ")
            file = F.substring_index(F.col(FILE), "/", -1)
            failure = F.raise_error(F.concat(prefix, file, F.lit(": "), reason))
            # A filter, because Spark does not compute a column that is not selected.
            good = frame.filter(F.when(reason.isNotNull(), failure).otherwise(F.lit(True)))
        return good.drop(REASON, LINE, FILE, BLOCK)

    def bad(self) -> BadRecords:
        """Count the bad records and keep samples; raise if there are too many."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        bad = self._typed(self.raw).filter(F.col(REASON).isNotNull())
        count = bad.agg(F.count(F.lit(1))).collect()[0][0]
        if not count:
            return BadRecords()
        samples = self._samples(max(self.options.bad_record_samples, MAX_LISTED))
        self._enforce(count, samples)
        return BadRecords(count, tuple(samples[: self.options.bad_record_samples]))

    def _typed(self, raw: "DataFrame") -> "DataFrame":
        """Convert text to the declared types, with a reason for each bad record."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        texts = [F.col(text_column(index)) for index in range(len(self.columns))]
        pairs = list(zip(texts, self.columns, strict=True))
        values = [convert(text, column, self.options) for text, column in pairs]
        damaged = self.line.contains(REPLACEMENT)
        reasons = [
            F.when(damaged, F.lit("a character is not valid UTF-8, or was damaged before")),
            F.when(F.col(CORRUPT).isNotNull(), F.lit(NOT_SPLIT)),
            *(
                _reason(text, value, column)
                for (text, column), value in zip(pairs, values, strict=True)
            ),
        ]
        named = [
            value.alias(column.name) for value, column in zip(values, self.columns, strict=True)
        ]
        shown = F.substring(self.line, 1, LONGEST_SAMPLE).alias(LINE)
        origin = [name for name in (FILE, BLOCK, NUMBER) if name in raw.columns]
        return raw.select(*named, F.coalesce(*reasons).alias(REASON), shown, *origin)

    def _samples(self, wanted: int) -> list[str]:
        """Return the first bad records, each with its file, line and reason."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        numbered = self.raw.withColumn(NUMBER, F.monotonically_increasing_id())
        bad = self._typed(numbered).filter(F.col(REASON).isNotNull())
        order = (FILE, BLOCK, NUMBER)
        rows = bad.select(*order, REASON, LINE).orderBy(*order).limit(wanted).collect()
        files = sorted({row[FILE] for row in rows})
        # Row ids increase across all blocks of all files; find the first id of each block.
        parts = numbered.filter(F.col(FILE).isin(files)).groupBy(FILE, BLOCK)
        counted = parts.agg(F.min(NUMBER).alias("first"), F.count(F.lit(1)).alias("count"))
        starts = _starts([tuple(row) for row in counted.collect()])
        records = [
            BadRecord(row[FILE], starts[row[FILE], row[BLOCK]] + row[NUMBER], row[REASON])
            for row in rows
        ]
        located = zip(self.locate(records), records, rows, strict=True)
        return [
            message or f"{name_of(record.file)}: {record.reason}: {row[LINE]}"
            for message, record, row in located
        ]

    def _enforce(self, count: int, samples: Sequence[str]) -> None:
        limit = self.options.max_bad_records
        allowed = limit if self.options.bad_records == "drop" else 0
        if allowed is None or count <= allowed:
            return
        listed = "; ".join(samples[:MAX_LISTED])
        rest = count - min(MAX_LISTED, len(samples))
        more = f"; and {rest} more bad record{'s' if rest > 1 else ''}" if rest > 0 else ""
        reason = f"{listed}{more}"
        if allowed:
            reason = f"{count} bad records, more than the {allowed} allowed: {reason}"
        raise DeliveryRejectedError(self.version.dataset, reason)


@dataclass(frozen=True)
class BadRecord:
    """A record that could not be read: its file, index in the file, and the reason."""

    file: str
    index: int
    reason: str


Locate = Callable[[Sequence[BadRecord]], Sequence[str | None]]


def name_of(file: str) -> str:
    """Return the file name of a URL from Spark."""
    return unquote(file).rpartition("/")[2]


def _starts(parts: Sequence[tuple[Any, ...]]) -> dict[tuple[str, int], int]:
    """Return, by file and block, the offset from row id to index in the file."""
    starts, before = {}, dict.fromkeys((part[0] for part in parts), 0)
    for file, block, first, count in sorted(parts):
        starts[file, block] = before[file] - first
        before[file] += count
    return starts


def convert(text: "SparkColumn", column: Column, options: TextOptions) -> "SparkColumn":
    """Convert text to a column's type; invalid values become null."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    kind = column.type.strip().lower()
    if kind == "string" or kind.startswith(("char", "varchar")):
        return text
    if kind == "date":
        return F.try_to_date(text, column.format or options.date_format)
    if kind.startswith("timestamp"):
        patterns = _timestamp_patterns(column.format or options.timestamp_format)
        parsed = (F.try_to_timestamp(text, F.lit(pattern)) for pattern in patterns)
        return F.coalesce(*parsed).cast(kind)
    return text.try_cast(kind)


def _timestamp_patterns(pattern: str) -> tuple[str, ...]:
    """Return the patterns to parse a timestamp; the default covers ISO 8601."""
    if pattern != DEFAULT_TIMESTAMP_FORMAT:
        return (pattern,)
    rest = "HH:mm:ss[.SSSSSSSSS][XXX]"
    return f"yyyy-MM-dd'T'{rest}", f"yyyy-MM-dd {rest}"


def _reason(text: "SparkColumn", value: "SparkColumn", column: Column) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    article = "an" if column.type[0].lower() in "aeiou" else "a"
    message = F.concat(
        F.lit("'"),
        F.substring(text, 1, 80),
        F.lit(f"' is not {article} {column.type} (column {column.name})"),
    )
    return F.when(text.isNotNull() & value.isNull(), message)


def formatted(frame: "DataFrame", columns: Sequence[Column]) -> "DataFrame":
    """Convert dates and timestamps of columns with a declared format to text."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    own = {column.name: column.format for column in columns if column.format}
    for name, pattern in own.items():
        frame = frame.withColumn(name, F.date_format(F.col(_quoted(name)), pattern))
    return frame


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
