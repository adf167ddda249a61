"""CSV files with real Spark: round trips, headers, bad records, trailers."""

import gzip
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.formats.contract import (
    BadRecords,
    DeliveryRejectedError,
    StoredVersion,
    WriteModeError,
)
from floe.execution.formats.csv import CsvFormat
from floe.execution.site import Site
from tests.execution.formats.factory import make_version, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

COLLATERAL = [
    {"name": "as_of", "type": "date"},
    {"name": "counterparty_id", "type": "bigint"},
    {"name": "amount", "type": "decimal(18,2)"},
]
CSV = CsvFormat()


def delivered(site: Site, text: str | bytes, name: str = "c.csv", **spec: Any) -> StoredVersion:
    """Return a version that another system delivered as one file."""
    put(site.root / "landing/2026-09-01" / name, text)
    location = "landing/{business_date}/*.csv*"
    version = make_version(**{"format": "csv", "location": location, "schema": COLLATERAL, **spec})
    delivery = CSV.find(site, version)
    assert delivery is not None
    return replace(version, path=delivery.path, details=delivery.details)


def rows(site: Site, spark: "SparkSession", version: StoredVersion) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in CSV.read(site, spark, version).collect())


def test_a_written_version_is_read_with_the_same_types(site: Site, spark: "SparkSession") -> None:
    version = make_version(
        format="csv",
        schema=[
            {"name": "id", "type": "bigint"},
            {"name": "name", "type": "string"},
            {"name": "since", "type": "date", "format": "dd.MM.yyyy"},
            {"name": "seen", "type": "timestamp"},
            {"name": "rate", "type": "double"},
            {"name": "active", "type": "boolean"},
        ],
    )
    seen = datetime(2026, 9, 1, 7, 30)  # noqa: DTZ001 - Spark gives timestamps back like this
    data = [
        (1, 'the "big", bank', date(2020, 1, 31), seen, 0.5, True),
        (2, " blanks ", None, None, None, None),
    ]
    frame = spark.createDataFrame(
        data, "id bigint, name string, since date, seen timestamp, rate double, active boolean"
    )
    spot = CSV.locate(site, version)
    assert spot.path == str(site.root / ".floe/files/credit.positions/2026-09-01.1")
    version = replace(version, path=spot.path)
    written = CSV.write(site, spark, frame, version, "replace")
    assert written.rows == 2
    assert written.size
    assert CSV.is_whole(site, spark, version)
    assert rows(site, spark, version) == data
    text = "".join(path.read_text() for path in Path(spot.path).glob("*.csv"))
    assert "31.01.2020" in text


def test_a_second_write_replaces_the_first(site: Site, spark: "SparkSession") -> None:
    version = make_version(format="csv")
    for count in (3, 1):
        frame = spark.range(count)
        assert CSV.write(site, spark, frame, version, "replace").rows == count
    assert rows(site, spark, version) == [(0,)]


def test_a_version_may_have_no_rows(site: Site, spark: "SparkSession") -> None:
    version = make_version(format="csv", schema=COLLATERAL, manifest={"kind": "json"})
    empty = spark.createDataFrame([], "as_of date, counterparty_id bigint, amount decimal(18,2)")
    written = CSV.write(site, spark, empty, version, "replace")
    assert written.rows == 0
    assert rows(site, spark, version) == []
    filtered = (
        spark.range(5)
        .filter("id > 9")
        .selectExpr(
            "date'2026-09-01' as_of", "id counterparty_id", "cast(1 as decimal(18,2)) amount"
        )
    )
    assert CSV.write(site, spark, filtered, version, "replace").rows == 0
    assert rows(site, spark, version) == []
    header = next(Path(CSV.locate(site, version).path).glob("*.csv")).read_text()
    assert header == "as_of,counterparty_id,amount\n"


def test_a_directory_format_only_supports_replace(site: Site, spark: "SparkSession") -> None:
    with pytest.raises(WriteModeError, match="csv, which does not support write mode 'append'"):
        CSV.write(site, spark, spark.range(1), make_version(format="csv"), "append")


def test_the_header_decides_the_order_of_columns(site: Site, spark: "SparkSession") -> None:
    put(site.root / "landing/2026-09-01/b.csv", "COUNTERPARTY_ID, amount,as_of\n8,2,2026-09-01\n")
    version = delivered(site, "amount,as_of,counterparty_id\n1.5,2026-09-01,7\n")
    day = date(2026, 9, 1)
    assert rows(site, spark, version) == [(day, 7, Decimal("1.50")), (day, 8, Decimal("2.00"))]


def test_a_header_that_differs_from_the_schema_is_rejected(
    site: Site, spark: "SparkSession"
) -> None:
    version = delivered(site, "as_of,counterparty,amount\n2026-09-01,7,1\n")
    with pytest.raises(
        DeliveryRejectedError,
        match=r"c\.csv differs .* missing: counterparty_id; not declared: counterparty\.",
    ):
        CSV.read(site, spark, version)


BAD = (
    "as_of,counterparty_id,amount\n"
    "2026-09-01,7,1.00\n"
    "2026-09-01,seven,1.00\n"
    "2026-09-01,8\n"
    "01.09.2026,9,1.00\n"
    "2026-09-01,10,1.00,extra\n"
)


def test_bad_records_are_dropped_counted_and_sampled(site: Site, spark: "SparkSession") -> None:
    version = delivered(site, BAD, options={"bad_records": "drop", "bad_record_samples": 2})
    assert rows(site, spark, version) == [(date(2026, 9, 1), 7, Decimal("1.00"))]
    bad = CSV.bad_records(site, spark, version)
    assert bad.count == 4
    assert bad.samples == (
        "c.csv line 3: 'seven' is not a bigint (column counterparty_id)",
        "c.csv line 4: it has 2 fields, expected 3",
    )


def test_more_bad_records_than_allowed_reject_the_version(
    site: Site, spark: "SparkSession"
) -> None:
    options = {"bad_records": "drop", "max_bad_records": 3}
    version = delivered(site, BAD, options=options)
    with pytest.raises(DeliveryRejectedError, match="4 bad records, more than the 3 allowed"):
        CSV.bad_records(site, spark, version)
    version = delivered(site, BAD, options={**options, "max_bad_records": 4})
    assert CSV.bad_records(site, spark, version).count == 4


def test_bad_records_reject_a_version_that_allows_none(site: Site, spark: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    version = delivered(site, BAD)
    with pytest.raises(DeliveryRejectedError, match=r"line 3: 'seven'.* and 1 more bad record"):
        CSV.bad_records(site, spark, version)
    with pytest.raises(PySparkException, match=r"credit\.positions' cannot be read: c\.csv"):
        CSV.read(site, spark, version).select("amount").collect()
    good = delivered(site, BAD.splitlines()[0] + "\n2026-09-01,7,1.00\n")
    assert CSV.bad_records(site, spark, good) == BadRecords()


HEADER = "as_of,counterparty_id,amount\n"
GOOD = "2026-09-01,7,1.00\n"
WRONG = "2026-09-01,8,abc\n"


@pytest.mark.parametrize(
    ("text", "name", "options", "location"),
    [
        (HEADER + GOOD * 15 + WRONG, "c.csv", {}, "c.csv line 17"),
        ("\n\n" + HEADER + "\n" + GOOD + "\n" + WRONG, "c.csv", {}, "c.csv line 7"),
        ("# by hand\n" + HEADER + "# more\n" + WRONG, "c.csv", {"comment": "#"}, "c.csv line 4"),
        ("a\nb\n" + HEADER + GOOD + WRONG, "c.csv", {"skip_lines": 2}, "c.csv line 5"),
        (GOOD + WRONG, "c.csv", {"header": False}, "c.csv line 2"),
        (gzip.compress((HEADER + WRONG).encode(), mtime=0), "c.csv.gz", {}, "c.csv.gz line 2"),
        ((HEADER + WRONG).encode("utf-16"), "c.csv", {"encoding": "utf-16"}, "c.csv line 2"),
        (HEADER + WRONG, "a b%20ü.csv", {}, "a b%20ü.csv line 2"),
        (HEADER + WRONG, "sub.csv/c.csv", {}, "sub.csv/c.csv line 2"),
    ],
)
def test_a_bad_record_is_reported_with_file_and_line(
    site: Site,
    spark: "SparkSession",
    text: str | bytes,
    name: str,
    options: dict[str, Any],
    location: str,
) -> None:
    delivered(site, HEADER * options.get("header", True) + GOOD, "good.csv.d/a.csv")
    if not {"skip_lines", "encoding"} & options.keys():
        delivered(site, HEADER * options.get("header", True) + GOOD, "b.csv")
    else:
        (site.root / "landing/2026-09-01/good.csv.d/a.csv").unlink()
    version = delivered(site, text, name, options=options)
    with pytest.raises(DeliveryRejectedError) as caught:
        CSV.bad_records(site, spark, version)
    assert caught.value.reason == f"{location}: 'abc' is not a decimal(18,2) (column amount)"


def test_line_numbers_are_right_in_a_file_that_spark_splits(
    site: Site, spark: "SparkSession"
) -> None:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4000")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    text = HEADER + GOOD * 3000 + WRONG + GOOD * 500 + WRONG
    delivered(site, HEADER + GOOD * 900, "b.csv")
    version = delivered(site, text, options={"bad_records": "drop"})
    reason = "'abc' is not a decimal(18,2) (column amount)"
    assert CSV.bad_records(site, spark, version).samples == (
        f"c.csv line 3002: {reason}",
        f"c.csv line 3503: {reason}",
    )


def test_invalid_utf8_is_never_replaced_silently(site: Site, spark: "SparkSession") -> None:
    schema = [{"name": "id", "type": "bigint"}, {"name": "city", "type": "string"}]
    version = delivered(site, "id,city\n1,Bern\n2,Zürich\n".encode("latin-1"), schema=schema)
    with pytest.raises(DeliveryRejectedError, match=r"c\.csv line 3: .* is not valid UTF-8"):
        CSV.bad_records(site, spark, version)


def test_every_csv_option_is_applied(site: Site, spark: "SparkSession") -> None:
    text = (
        "made by the old system\n"
        "# a comment\n"
        "as_of~|counterparty_id~|amount~|note\n"
        "# another\n"
        "01.09.2026~|7~|NA~|'it\\'s ~| Zürich'\n"
        "\n"
    )
    version = delivered(
        site,
        text.encode("cp1252"),
        schema=[*COLLATERAL, {"name": "note", "type": "string"}],
        options={
            "delimiter": "~|",
            "quote": "'",
            "escape": "\\",
            "comment": "#",
            "encoding": "cp1252",
            "null_value": "NA",
            "date_format": "dd.MM.yyyy",
            "skip_lines": 1,
        },
    )
    assert rows(site, spark, version) == [(date(2026, 9, 1), 7, None, "it's ~| Zürich")]


def test_values_may_contain_line_breaks(site: Site, spark: "SparkSession") -> None:
    version = delivered(
        site,
        'id,note\n1,"two\nlines"\n2,"a ""quote"""\n',
        schema=[{"name": "id", "type": "int"}, {"name": "note", "type": "string"}],
        options={"multiline": True},
        manifest={"kind": "trailer"},
    )
    put(site.root / "landing/2026-09-01/c.csv", 'id,note\n1,"two\nlines"\n2,"a ""quote"""\nT,2\n')
    delivery = CSV.find(site, version)
    assert delivery is not None
    version = replace(version, details=delivery.details)
    assert CSV.verify(site, spark, version, delivery).rows == 2
    assert rows(site, spark, version) == [(1, "two\nlines"), (2, 'a "quote"')]


def test_a_trailer_is_not_a_row_even_if_rows_look_like_it(
    site: Site, spark: "SparkSession"
) -> None:
    version = delivered(
        site,
        "name,rows\nT,2\nT,1\nT,2\n",
        schema=[{"name": "name", "type": "string"}, {"name": "rows", "type": "int"}],
        manifest={"kind": "trailer"},
    )
    assert rows(site, spark, version) == [("T", 1), ("T", 2)]
    CSV.discard(site, spark, version)
    assert not list((site.root / ".floe/prepared").rglob("*.csv"))
    assert (site.root / "landing/2026-09-01/c.csv").exists()


def test_undeclared_columns_are_inferred(site: Site, spark: "SparkSession") -> None:
    version = delivered(site, "as_of,rate,name\n2026-09-01,1.5,x\n", schema=[])
    frame = CSV.read(site, spark, version)
    assert [f.dataType.simpleString() for f in frame.schema.fields] == ["date", "double", "string"]
    assert rows(site, spark, version) == [(date(2026, 9, 1), 1.5, "x")]


def test_a_compressed_delivery_is_read(site: Site, spark: "SparkSession") -> None:
    import gzip

    text = b"as_of,counterparty_id,amount\n2026-09-01,7,1.00\n"
    row = (date(2026, 9, 1), 7, Decimal("1.00"))
    assert rows(site, spark, delivered(site, gzip.compress(text), "c.csv.gz")) == [row]
    (site.root / "landing/2026-09-01/c.csv.gz").unlink()
    version = delivered(site, gzip.compress(text), options={"compression": "gzip"})
    assert rows(site, spark, version) == [row]


def test_file_names_with_wildcard_characters_are_read_literally(
    site: Site, spark: "SparkSession"
) -> None:
    text = "as_of,counterparty_id,amount\n2026-09-01,7,1.00\n"
    version = delivered(site, text, "positions [final] {v2}.csv")
    assert len(rows(site, spark, version)) == 1
