"""Lines of text as typed rows, and what to do with lines that are none.

Everything is read as text first and converted here: so a bad value is known by its column, and
every column may have a format of its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from floe.execution.formats.contract import BadRecords, DeliveryRejectedError, VersionPlace
from floe.spec.datasets import Column
from floe.spec.formats import TextOptions

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

CORRUPT = "_corrupt"
FILE = "_floe_file"
REASON = "_floe_reason"
LINE = "_floe_line"
LONGEST_SAMPLE = 500


def text_column(index: int) -> str:
    """Return what a declared column is called while it is still text."""
    return f"c{index}"


@dataclass(frozen=True)
class Records:
    """Typed rows beside the reason why some lines are none."""

    frame: "DataFrame"
    place: VersionPlace
    options: TextOptions

    def rows(self) -> "DataFrame":
        """Return the good rows. With `bad_records: fail` a bad one fails whoever reads it."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        reason = F.col(REASON)
        if self.options.bad_records == "drop":
            kept = self.frame.filter(reason.isNull())
        else:
            failure = F.raise_error(
                F.concat(F.lit(f"A record of '{self.place.dataset}' cannot be read: "), _sample())
            )
            # A filter, because a column that nobody asks for is never computed.
            kept = self.frame.filter(F.when(reason.isNotNull(), failure).otherwise(F.lit(True)))
        return kept.drop(REASON, LINE, FILE)

    def bad(self) -> BadRecords:
        """Count the bad lines and keep some, in one scan; raise when there may be none, or less."""
        from pyspark.sql.connect import functions as F  # noqa: N812

        wanted = self.options.bad_record_samples
        bad = self.frame.filter(F.col(REASON).isNotNull())
        # The lower 33 bits count the rows of a partition: a few of each are kept, not all.
        number = F.monotonically_increasing_id().bitwiseAND(F.lit((1 << 33) - 1))
        few = bad.select(F.when(number < max(wanted, 1), _sample()).alias("sample"))
        found = few.agg(
            F.count(F.lit(1)).alias("count"), F.collect_list("sample").alias("samples")
        ).collect()[0]
        records = BadRecords(found["count"], tuple(found["samples"][:wanted]))
        self._enforce(records, found["samples"])
        return records

    def _enforce(self, bad: BadRecords, samples: Sequence[str]) -> None:
        limit = self.options.max_bad_records
        allowed = limit if self.options.bad_records == "drop" else 0
        if allowed is None or bad.count <= allowed:
            return
        most = f", more than {allowed}," if allowed else ""
        reason = f"{bad.count} records{most} cannot be read. {' | '.join(samples[:5])}"
        raise DeliveryRejectedError(self.place.dataset, reason)


def typed_records(
    raw: "DataFrame",
    place: VersionPlace,
    columns: Sequence[Column],
    options: TextOptions,
    line: "SparkColumn",
) -> Records:
    """Convert text to the declared types; a value that does not convert makes a bad record."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    texts = [F.col(text_column(index)) for index in range(len(columns))]
    values = [convert(text, column, options) for text, column in zip(texts, columns, strict=True)]
    reasons = [F.when(F.col(CORRUPT).isNotNull(), F.lit("it does not have its fields"))]
    reasons += [_reason(*each) for each in zip(texts, values, columns, strict=True)]
    named = [value.alias(column.name) for value, column in zip(values, columns, strict=True)]
    shown = F.substring(line, 1, LONGEST_SAMPLE).alias(LINE)
    frame = raw.select(*named, F.coalesce(*reasons).alias(REASON), shown, F.col(FILE))
    return Records(frame, place, options)


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

    told = F.concat(
        F.lit(f"{column.name} '"), F.substring(text, 1, 80), F.lit(f"' is no {column.type}")
    )
    return F.when(text.isNotNull() & value.isNull(), told)


def _sample() -> Any:
    from pyspark.sql.connect import functions as F  # noqa: N812

    parts = [F.col(FILE), F.lit(": "), F.col(LINE), F.lit(" ("), F.col(REASON), F.lit(")")]
    return F.concat(*parts)


def formatted(frame: "DataFrame", columns: Sequence[Column]) -> "DataFrame":
    """Write the dates and timestamps of columns that have a format of their own as text."""
    from pyspark.sql.connect import functions as F  # noqa: N812

    own = {column.name: column.format for column in columns if column.format}
    for name, pattern in own.items():
        frame = frame.withColumn(name, F.date_format(F.col(_quoted(name)), pattern))
    return frame


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"
