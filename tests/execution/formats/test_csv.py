"""CSV files with real Spark: round trips, headers, bad records, and what stands around rows."""

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
    VersionPlace,
    WriteModeError,
)
from floe.execution.formats.csv import CsvFormat
from floe.execution.site import Site
from tests.execution.formats.places import make_place, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

COLLATERAL = [
    {"name": "as_of", "type": "date"},
    {"name": "counterparty_id", "type": "bigint"},
    {"name": "amount", "type": "decimal(18,2)"},
]
CSV = CsvFormat()


def delivered(site: Site, text: str | bytes, name: str = "c.csv", **spec: Any) -> VersionPlace:
    """A version that others delivered as one file."""
    put(site.root / "landing/2026-09-01" / name, text)
    location = "landing/{business_date}/*.csv*"
    place = make_place(**{"format": "csv", "location": location, "schema": COLLATERAL, **spec})
    delivery = CSV.find(site, place)
    assert delivery is not None
    return replace(place, path=delivery.path, details=delivery.details)


def rows(site: Site, spark: "SparkSession", place: VersionPlace) -> list[tuple[Any, ...]]:
    return sorted(tuple(row) for row in CSV.read(site, spark, place).collect())


def test_a_version_written_is_read_again_with_its_types(site: Site, spark: "SparkSession") -> None:
    place = make_place(
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
    spot = CSV.locate(site, place)
    assert spot.path == str(site.root / ".floe/files/credit.positions/2026-09-01.1")
    place = replace(place, path=spot.path)
    written = CSV.write(site, spark, frame, place, "replace")
    assert written.rows == 2
    assert written.size
    assert CSV.is_whole(site, spark, place)
    assert rows(site, spark, place) == data
    text = "".join(path.read_text() for path in Path(spot.path).glob("*.csv"))
    assert "31.01.2020" in text


def test_a_second_write_replaces_what_the_first_left(site: Site, spark: "SparkSession") -> None:
    place = make_place(format="csv")
    for count in (3, 1):
        frame = spark.range(count)
        assert CSV.write(site, spark, frame, place, "replace").rows == count
    assert rows(site, spark, place) == [(0,)]


def test_no_rows_are_a_version_too(site: Site, spark: "SparkSession") -> None:
    place = make_place(format="csv", schema=COLLATERAL, manifest={"kind": "json"})
    empty = spark.createDataFrame([], "as_of date, counterparty_id bigint, amount decimal(18,2)")
    written = CSV.write(site, spark, empty, place, "replace")
    assert written.rows == 0
    assert rows(site, spark, place) == []
    filtered = (
        spark.range(5)
        .filter("id > 9")
        .selectExpr(
            "date'2026-09-01' as_of", "id counterparty_id", "cast(1 as decimal(18,2)) amount"
        )
    )
    assert CSV.write(site, spark, filtered, place, "replace").rows == 0
    assert rows(site, spark, place) == []
    header = next(Path(CSV.locate(site, place).path).glob("*.csv")).read_text()
    assert header == "as_of,counterparty_id,amount\n"


def test_a_directory_is_only_ever_replaced(site: Site, spark: "SparkSession") -> None:
    with pytest.raises(WriteModeError, match="csv, which cannot be written with 'append'"):
        CSV.write(site, spark, spark.range(1), make_place(format="csv"), "append")


def test_the_header_says_which_field_is_which_column(site: Site, spark: "SparkSession") -> None:
    put(site.root / "landing/2026-09-01/b.csv", "COUNTERPARTY_ID, amount,as_of\n8,2,2026-09-01\n")
    place = delivered(site, "amount,as_of,counterparty_id\n1.5,2026-09-01,7\n")
    day = date(2026, 9, 1)
    assert rows(site, spark, place) == [(day, 7, Decimal("1.50")), (day, 8, Decimal("2.00"))]


def test_a_header_that_differs_from_the_schema_is_rejected(
    site: Site, spark: "SparkSession"
) -> None:
    place = delivered(site, "as_of,counterparty,amount\n2026-09-01,7,1\n")
    with pytest.raises(
        DeliveryRejectedError,
        match=r"c\.csv differs .* missing: counterparty_id; not declared: counterparty\.",
    ):
        CSV.read(site, spark, place)


BAD = (
    "as_of,counterparty_id,amount\n"
    "2026-09-01,7,1.00\n"
    "2026-09-01,seven,1.00\n"
    "2026-09-01,8\n"
    "01.09.2026,9,1.00\n"
    "2026-09-01,10,1.00,extra\n"
)


def test_bad_records_are_dropped_counted_and_sampled(site: Site, spark: "SparkSession") -> None:
    place = delivered(site, BAD, options={"bad_records": "drop", "bad_record_samples": 2})
    assert rows(site, spark, place) == [(date(2026, 9, 1), 7, Decimal("1.00"))]
    bad = CSV.bad_records(site, spark, place)
    assert bad.count == 4
    assert bad.samples == (
        "c.csv line 3: 'seven' is not a bigint (column counterparty_id)",
        "c.csv line 4: it has 2 fields, expected 3",
    )


def test_more_bad_records_than_allowed_reject_the_version(
    site: Site, spark: "SparkSession"
) -> None:
    options = {"bad_records": "drop", "max_bad_records": 3}
    place = delivered(site, BAD, options=options)
    with pytest.raises(DeliveryRejectedError, match="4 bad records, more than the 3 allowed"):
        CSV.bad_records(site, spark, place)
    place = delivered(site, BAD, options={**options, "max_bad_records": 4})
    assert CSV.bad_records(site, spark, place).count == 4


def test_one_bad_record_fails_a_version_that_allows_none(site: Site, spark: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    place = delivered(site, BAD)
    with pytest.raises(DeliveryRejectedError, match=r"line 3: 'seven'.* and 1 more bad record"):
        CSV.bad_records(site, spark, place)
    with pytest.raises(PySparkException, match=r"credit\.positions' cannot be read: c\.csv"):
        CSV.read(site, spark, place).select("amount").collect()
    good = delivered(site, BAD.splitlines()[0] + "\n2026-09-01,7,1.00\n")
    assert CSV.bad_records(site, spark, good) == BadRecords()


HEADER = "as_of,counterparty_id,amount\n"
GOOD = "2026-09-01,7,1.00\n"
WRONG = "2026-09-01,8,abc\n"


@pytest.mark.parametrize(
    ("text", "name", "options", "told"),
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
def test_a_bad_record_is_named_by_file_and_line(
    site: Site,
    spark: "SparkSession",
    text: str | bytes,
    name: str,
    options: dict[str, Any],
    told: str,
) -> None:
    delivered(site, HEADER * options.get("header", True) + GOOD, "good.csv.d/a.csv")
    if not {"skip_lines", "encoding"} & options.keys():
        delivered(site, HEADER * options.get("header", True) + GOOD, "b.csv")
    else:
        (site.root / "landing/2026-09-01/good.csv.d/a.csv").unlink()
    place = delivered(site, text, name, options=options)
    with pytest.raises(DeliveryRejectedError) as caught:
        CSV.bad_records(site, spark, place)
    assert caught.value.reason == f"{told}: 'abc' is not a decimal(18,2) (column amount)"


def test_a_line_is_found_in_a_file_that_spark_reads_in_parts(
    site: Site, spark: "SparkSession"
) -> None:
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4000")
    spark.conf.set("spark.sql.files.openCostInBytes", "0")
    text = HEADER + GOOD * 3000 + WRONG + GOOD * 500 + WRONG
    delivered(site, HEADER + GOOD * 900, "b.csv")
    place = delivered(site, text, options={"bad_records": "drop"})
    told = "'abc' is not a decimal(18,2) (column amount)"
    assert CSV.bad_records(site, spark, place).samples == (
        f"c.csv line 3002: {told}",
        f"c.csv line 3503: {told}",
    )


def test_text_that_is_not_utf8_is_never_replaced_in_silence(
    site: Site, spark: "SparkSession"
) -> None:
    schema = [{"name": "id", "type": "bigint"}, {"name": "city", "type": "string"}]
    place = delivered(site, "id,city\n1,Bern\n2,Zürich\n".encode("latin-1"), schema=schema)
    with pytest.raises(DeliveryRejectedError, match=r"c\.csv line 3: .* is not valid UTF-8"):
        CSV.bad_records(site, spark, place)


def test_every_option_is_heard(site: Site, spark: "SparkSession") -> None:
    text = (
        "made by the old system\n"
        "# a comment\n"
        "as_of~|counterparty_id~|amount~|note\n"
        "# another\n"
        "01.09.2026~|7~|NA~|'it\\'s ~| Zürich'\n"
        "\n"
    )
    place = delivered(
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
    assert rows(site, spark, place) == [(date(2026, 9, 1), 7, None, "it's ~| Zürich")]


def test_values_may_hold_line_breaks(site: Site, spark: "SparkSession") -> None:
    place = delivered(
        site,
        'id,note\n1,"two\nlines"\n2,"a ""quote"""\n',
        schema=[{"name": "id", "type": "int"}, {"name": "note", "type": "string"}],
        options={"multiline": True},
        manifest={"kind": "trailer"},
    )
    put(site.root / "landing/2026-09-01/c.csv", 'id,note\n1,"two\nlines"\n2,"a ""quote"""\nT,2\n')
    delivery = CSV.find(site, place)
    assert delivery is not None
    place = replace(place, details=delivery.details)
    assert CSV.verify(site, spark, place, delivery).rows == 2
    assert rows(site, spark, place) == [(1, "two\nlines"), (2, 'a "quote"')]


def test_a_trailer_is_not_a_row_even_when_rows_look_like_one(
    site: Site, spark: "SparkSession"
) -> None:
    place = delivered(
        site,
        "name,rows\nT,2\nT,1\nT,2\n",
        schema=[{"name": "name", "type": "string"}, {"name": "rows", "type": "int"}],
        manifest={"kind": "trailer"},
    )
    assert rows(site, spark, place) == [("T", 1), ("T", 2)]
    CSV.discard(site, spark, place)
    assert not list((site.root / ".floe/prepared").rglob("*.csv"))
    assert (site.root / "landing/2026-09-01/c.csv").exists()


def test_columns_that_nobody_declared_are_inferred(site: Site, spark: "SparkSession") -> None:
    place = delivered(site, "as_of,rate,name\n2026-09-01,1.5,x\n", schema=[])
    frame = CSV.read(site, spark, place)
    assert [f.dataType.simpleString() for f in frame.schema.fields] == ["date", "double", "string"]
    assert rows(site, spark, place) == [(date(2026, 9, 1), 1.5, "x")]


def test_a_compressed_delivery_is_read(site: Site, spark: "SparkSession") -> None:
    import gzip

    text = b"as_of,counterparty_id,amount\n2026-09-01,7,1.00\n"
    row = (date(2026, 9, 1), 7, Decimal("1.00"))
    assert rows(site, spark, delivered(site, gzip.compress(text), "c.csv.gz")) == [row]
    (site.root / "landing/2026-09-01/c.csv.gz").unlink()
    place = delivered(site, gzip.compress(text), options={"compression": "gzip"})
    assert rows(site, spark, place) == [row]


def test_names_that_look_like_patterns_are_names(site: Site, spark: "SparkSession") -> None:
    text = "as_of,counterparty_id,amount\n2026-09-01,7,1.00\n"
    place = delivered(site, text, "positions [final] {v2}.csv")
    assert len(rows(site, spark, place)) == 1
