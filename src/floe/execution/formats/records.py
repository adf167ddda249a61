"""Lines of text as typed rows, and what to do with lines that are none.

Everything is read as text first and converted here: so a bad value is known by its column, and
every column may have a format of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from floe.execution.formats.contract import BadRecords, DeliveryRejectedError, VersionPlace
from floe.spec.datasets import Column
from floe.spec.formats import TextOptions

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

CORRUPT = "_corrupt"
FILE, BLOCK, NUMBER = "_floe_file", "_floe_block", "_floe_number"
REASON = "_floe_reason"
LINE = "_floe_line"
LONGEST_SAMPLE = 500
MOST_TOLD = 3
REPLACEMENT = "\ufffd"
"""What Spark puts where bytes are no text."""
NOT_SPLIT = "it does not have the declared fields"


def with_place(frame: "DataFrame") -> "DataFrame":
    """Add to lines which file and which part of it they come from."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    file, block = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    return frame.select("*", file.alias(FILE), block.alias(BLOCK))


def text_column(index: int) -> str:
    """Return what a declared column is called while it is still text."""
    return f"c{index}"


@dataclass(frozen=True)
class Records:
    """Lines of text files as typed rows, beside the reason why some lines are none."""

    raw: "DataFrame"
    """The text of each column, what was not split into fields, and where a line stands."""
    line: "SparkColumn"
    place: VersionPlace
    columns: Sequence[Column]
    options: TextOptions
    locate: "Locate" = lambda found: [None for _ in found]
    """Finds the lines of records in their files."""

    def rows(self) -> "DataFrame":
        """Return the good rows. With `bad_records: fail` a bad one fails whoever reads it."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        reason = F.col(REASON)
        frame = self._typed(self.raw)
        if self.options.bad_records == "drop":
            kept = frame.filter(reason.isNull())
        else:
            told = F.lit(f"A record of '{self.place.dataset}' cannot be read: ")
            file = F.substring_index(F.col(FILE), "/", -1)
            failure = F.raise_error(F.concat(told, file, F.lit(": "), reason))
            # A filter, because a column that nobody asks for is never computed.
            kept = frame.filter(F.when(reason.isNotNull(), failure).otherwise(F.lit(True)))
        return kept.drop(REASON, LINE, FILE, BLOCK)

    def bad(self) -> BadRecords:
        """Count the bad lines and keep some; raise when there are more than may be."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        bad = self._typed(self.raw).filter(F.col(REASON).isNotNull())
        count = bad.agg(F.count(F.lit(1))).collect()[0][0]
        if not count:
            return BadRecords()
        samples = self._samples(max(self.options.bad_record_samples, MOST_TOLD))
        self._enforce(count, samples)
        return BadRecords(count, tuple(samples[: self.options.bad_record_samples]))

    def _typed(self, raw: "DataFrame") -> "DataFrame":
        """Convert text to the declared types; a value that does not convert makes a bad record."""
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
        named = [value.alias(one.name) for value, one in zip(values, self.columns, strict=True)]
        shown = F.substring(self.line, 1, LONGEST_SAMPLE).alias(LINE)
        place = [name for name in (FILE, BLOCK, NUMBER) if name in raw.columns]
        return raw.select(*named, F.coalesce(*reasons).alias(REASON), shown, *place)

    def _samples(self, wanted: int) -> list[str]:
        """Return the first bad records, each with its file, line and reason."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        numbered = self.raw.withColumn(NUMBER, F.monotonically_increasing_id())
        bad = self._typed(numbered).filter(F.col(REASON).isNotNull())
        order = (FILE, BLOCK, NUMBER)
        found = bad.select(*order, REASON, LINE).orderBy(*order).limit(wanted).collect()
        files = sorted({row[FILE] for row in found})
        # Numbers run through all parts of all files: those of one part start somewhere.
        parts = numbered.filter(F.col(FILE).isin(files)).groupBy(FILE, BLOCK)
        counted = parts.agg(F.min(NUMBER).alias("first"), F.count(F.lit(1)).alias("count"))
        starts = _starts([tuple(row) for row in counted.collect()])
        records = [
            BadRecord(row[FILE], starts[row[FILE], row[BLOCK]] + row[NUMBER], row[REASON])
            for row in found
        ]
        placed = self.locate(records)
        pairs = zip(placed, records, found, strict=True)
        return [
            where or f"{name_of(one.file)}: {one.reason}: {row[LINE]}" for where, one, row in pairs
        ]

    def _enforce(self, count: int, samples: Sequence[str]) -> None:
        limit = self.options.max_bad_records
        allowed = limit if self.options.bad_records == "drop" else 0
        if allowed is None or count <= allowed:
            return
        told = "; ".join(samples[:MOST_TOLD])
        rest = count - min(MOST_TOLD, len(samples))
        more = f"; and {rest} more bad record{'s' if rest > 1 else ''}" if rest > 0 else ""
        reason = f"{told}{more}"
        if allowed:
            reason = f"{count} bad records, more than the {allowed} allowed: {reason}"
        raise DeliveryRejectedError(self.place.dataset, reason)


@dataclass(frozen=True)
class BadRecord:
    """A line that is not a record: of which file, the how-manieth of it, and why."""

    file: str
    index: int
    reason: str


Locate = Callable[[Sequence[BadRecord]], Sequence[str | None]]


def name_of(file: str) -> str:
    """Return the name of a file that Spark gives as a URL."""
    return unquote(file).rpartition("/")[2]


def _starts(parts: Sequence[tuple[Any, ...]]) -> dict[tuple[str, int], int]:
    """Return by file and part what turns a row's number into its index in the file."""
    starts, before = {}, dict.fromkeys((part[0] for part in parts), 0)
    for file, block, first, count in sorted(parts):
        starts[file, block] = before[file] - first
        before[file] += count
    return starts


def convert(text: "SparkColumn", column: Column, options: TextOptions) -> "SparkColumn":
    """Convert a text to a column's type; what does not convert becomes null."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    kind = column.type.strip().lower()
    if kind == "string" or kind.startswith(("char", "varchar")):
        return text
    if kind == "date":
        return F.try_to_date(text, column.format or options.date_format)
    if kind.startswith("timestamp"):
        wanted = F.lit(column.format or options.timestamp_format)
        return F.try_to_timestamp(text, wanted).cast(kind)
    return text.try_cast(kind)


def _reason(text: "SparkColumn", value: "SparkColumn", column: Column) -> "SparkColumn":
    from pyspark.sql.connect import functions as F  # noqa: N812

    article = "an" if column.type[0].lower() in "aeiou" else "a"
    told = F.concat(
        F.lit("'"),
        F.substring(text, 1, 80),
        F.lit(f"' is not {article} {column.type} (column {column.name})"),
    )
    return F.when(text.isNotNull() & value.isNull(), told)


def formatted(frame: "DataFrame", columns: Sequence[Column]) -> "DataFrame":
    """Write the dates and timestamps of columns that have a format of their own as text."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    own = {column.name: column.format for column in columns if column.format}
    for name, pattern in own.items():
        frame = frame.withColumn(name, F.date_format(F.col(_quoted(name)), pattern))
    return frame


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
