"""Fixed-width files with real Spark."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.execution.formats.contract import DeliveryRejectedError, StoredVersion
from floe.execution.formats.fixed_width import FixedWidthFormat
from floe.execution.site import Site
from tests.execution.formats.factory import make_version, put

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

FIXED = FixedWidthFormat()
COLUMNS = [
    {"name": "id", "type": "int", "width": 4},
    {"name": "name", "type": "string", "width": 8},
    {"name": "since", "type": "date", "width": 8, "format": "yyyyMMdd"},
    {"name": "amount", "type": "decimal(9,2)", "width": 9},
]
LINES = "   1Alpha   20260901   -12.50\n   2Zürich                   \n"


def delivered(site: Site, text: str | bytes, **spec: Any) -> StoredVersion:
    put(site.root / "in/2026-09-01.txt", text)
    fields = {"format": "fixed_width", "location": "in/{business_date}.txt", "schema": COLUMNS}
    version = make_version("credit.ledger", **{**fields, **spec})
    delivery = FIXED.find(site, version)
    assert delivery is not None
    return replace(version, path=delivery.path, details=delivery.details)


ROWS = [(1, "Alpha", date(2026, 9, 1), Decimal("-12.50")), (2, "Zürich", None, None)]


def test_lines_are_split_by_the_widths_of_columns(site: Site, spark: "SparkSession") -> None:
    version = delivered(site, LINES)
    assert sorted(tuple(row) for row in FIXED.read(site, spark, version).collect()) == ROWS


def test_skipped_lines_trailer_and_encoding_are_applied(site: Site, spark: "SparkSession") -> None:
    text = f"LEDGER OF THE DAY\n{LINES}T 2\n".encode("cp1252")
    options = {"skip_lines": 1, "encoding": "cp1252"}
    version = delivered(site, text, options=options, manifest={"kind": "trailer"})
    assert sorted(tuple(row) for row in FIXED.read(site, spark, version).collect()) == ROWS


def test_lines_of_wrong_length_and_invalid_values_are_bad_records(
    site: Site, spark: "SparkSession"
) -> None:
    text = f"{LINES}   3short\n   xWrong   20260901     1.00\n{LINES.splitlines()[0]} and more\n"
    version = delivered(site, text, options={"bad_records": "drop"})
    assert sorted(tuple(row) for row in FIXED.read(site, spark, version).collect()) == ROWS
    bad = FIXED.bad_records(site, spark, version)
    assert bad.count == 3
    assert [sample.partition(" ")[2] for sample in bad.samples] == [
        "line 3: it has 9 characters, expected 29",
        "line 4: 'x' is not an int (column id)",
        "line 5: it has 38 characters, expected 29",
    ]
    with pytest.raises(DeliveryRejectedError, match="line 3: it has 9 characters"):
        FIXED.bad_records(site, spark, delivered(site, text))


def test_values_are_padded_to_their_widths(site: Site, spark: "SparkSession") -> None:
    schema = "id int, name string, since date, amount decimal(9,2)"
    frame: Any = spark.createDataFrame(ROWS, schema)
    version = make_version(
        "credit.ledger", format="fixed_width", schema=COLUMNS, manifest={"kind": "trailer"}
    )
    assert FIXED.write(site, spark, frame, version, "replace").rows == 2
    file = Path(FIXED.locate(site, version).path) / "ledger.txt"
    assert file.read_text() == f"{LINES}T 2\n"
    version = replace(version, path=str(file.parent))
    assert sorted(tuple(row) for row in FIXED.read(site, spark, version).collect()) == ROWS
    zeros = make_version(
        "credit.ledger", format="fixed_width", schema=[COLUMNS[0], COLUMNS[3]], options={"pad": "0"}
    )
    FIXED.write(site, spark, frame.filter("id = 1").select("id", "amount"), zeros, "replace")
    files = Path(FIXED.locate(site, zeros).path).glob("part-*")
    assert "".join(path.read_text() for path in files) == "0001-00012.50\n"


def test_a_value_that_is_too_long_fails_the_write(site: Site, spark: "SparkSession") -> None:
    from pyspark.errors import PySparkException

    frame: Any = spark.sql("select 1 id, 'much too long' name")
    version = make_version("credit.ledger", format="fixed_width", schema=COLUMNS[:2])
    with pytest.raises(PySparkException, match=r"A value of name .* longer than 8 characters"):
        FIXED.write(site, spark, frame, version, "replace")
