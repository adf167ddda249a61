"""Planned statements give the expected results on a real Spark."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe.quality import Verdict, judge, plan_audit, sample_query
from floe.spec.checks import AnyCheck
from tests.quality.factory import POSITIONS, check

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

DAY_END = datetime(2026, 9, 2, tzinfo=UTC)
REFERENCES = {"ref.books": "books"}
ROWS = r"""
    (1,    'A',  'loan',  10.00, 0.5D,          cast(0.1 as float), date '2030-01-01',
           timestamp '2026-09-01 20:00:00+00:00', true),
    (2,    'A',  'swap',  -1.00, double('NaN'), 0.2F, date '2020-01-01',
           timestamp '2026-09-01 22:30:00+00:00', false),
    (2,    'B',  'it\'s', 20.00, 2.0D,          null, null, null, true),
    (4,    null, null,    null,  null,          null, null, null, null),
    (null, null, 'loan',  5.00,  0.1D,          null, null, null, false)
"""


@pytest.fixture
def lake(spark: "SparkSession") -> Iterator["SparkSession"]:
    """A session with views of positions and of the books they refer to."""
    names = ", ".join(column.name for column in POSITIONS)
    spark.sql(f"create temp view positions as select * from values {ROWS} as t({names})")
    spark.sql("create temp view books as select * from values ('A'), (null) as t(name)")
    yield spark
    spark.sql("drop view positions")
    spark.sql("drop view books")


def measure(spark: "SparkSession", *checks: AnyCheck) -> list[Verdict]:
    """Return the verdicts on these checks, without the contract."""
    audit = plan_audit(checks, POSITIONS, view="positions", references=REFERENCES)
    measured = audit.read(row.asDict() for row in spark.sql(audit.statement).collect())
    assert measured[audit.row_count] == 5
    return judge(audit, measured, history=[5], day_end=DAY_END)[1:]


FAILING: list[tuple[dict[str, Any], int, list[int | None]]] = [
    ({"kind": "not_null", "columns": ["book"]}, 2, [4, None]),
    ({"kind": "not_null", "columns": ["Book", "NOTIONAL"], "where": "open is null"}, 1, [4]),
    ({"kind": "accepted_values", "column": "product", "values": ["loan", "swap"]}, 1, [2]),
    ({"kind": "accepted_values", "column": "product", "values": ["loan", "it's"]}, 1, [2]),
    ({"kind": "accepted_values", "column": "position_id", "values": [1, "4"]}, 2, [2, 2]),
    ({"kind": "accepted_values", "column": "open", "values": [True]}, 2, [2, None]),
    ({"kind": "range", "column": "notional", "min": 0}, 1, [2]),
    ({"kind": "range", "column": "notional", "min": 0, "max": 15}, 2, [2, 2]),
    ({"kind": "range", "column": "weight", "min": 0}, 1, [2]),  # NaN
    ({"kind": "range", "column": "weight", "max": 1}, 2, [2, 2]),
    ({"kind": "range", "column": "share", "max": 0.1}, 1, [2]),
    ({"kind": "range", "column": "maturity", "min": "2026-09-01"}, 1, [2]),
    ({"kind": "range", "column": "traded_at", "max": "2026-09-01 21:00:00+00:00"}, 1, [2]),
    ({"kind": "range", "column": "book", "max": 5}, 3, [1, 2, 2]),  # text that is no number
    ({"kind": "unique", "columns": ["position_id"]}, 2, [2, 2]),
    (
        {"kind": "unique", "columns": ["product"], "where": "position_id is null or open"},
        2,
        [1, None],
    ),
    ({"kind": "unique", "columns": ["book"]}, 2, [1, 2]),
    (
        {
            "kind": "referential",
            "columns": ["book"],
            "dataset": "ref.books",
            "to_columns": ["name"],
        },
        1,
        [2],
    ),
    ({"sql": "select count(*) from {dataset} where notional < 0", "expect": "= 0"}, 1, [2]),
    (
        {"sql": "select count(*) from {dataset} p", "where": "notional > 9", "expect": "= 0"},
        2,
        [1, 2],
    ),
    (
        {"kind": "not_null", "columns": ["notional"], "where": "position_id not in (select 2)"},
        1,
        [4],
    ),
]


def test_each_kind_of_check_counts_its_rows_in_one_statement(lake: "SparkSession") -> None:
    checks = [check(**values) for values, _, _ in FAILING]
    verdicts = measure(lake, *checks)
    assert [verdict.failed_rows for verdict in verdicts] == [failed for _, failed, _ in FAILING]
    assert {verdict.status for verdict in verdicts} == {"FAIL"}


def test_samples_are_the_rows_that_failed(lake: "SparkSession") -> None:
    for values, _, ids in FAILING:
        query = sample_query(
            check(**values), "positions", 10, columns=POSITIONS, references=REFERENCES
        )
        assert query is not None
        rows = lake.sql(query).collect()
        assert sorted((row.position_id for row in rows), key=str) == sorted(ids, key=str), query


def test_checks_that_are_met_pass(lake: "SparkSession") -> None:
    verdicts = measure(
        lake,
        check(kind="row_count", min=5, max=5, max_change="0%"),
        check(kind="row_count", min=2, max=2, where="open"),
        check(kind="not_null", columns=["position_id", "product"], where="open"),
        check(kind="unique", columns=["position_id", "book"]),
        check(kind="unique", columns=["maturity"]),  # nulls are no keys
        check(kind="referential", columns=["book"], dataset="ref.books", to_columns=["name"],
              where="book <> 'B' -- not yet delivered"),
        check(kind="freshness", column="traded_at", max_age="90m"),
        check(kind="freshness", column="maturity", max_age="0s"),
        check(name="sum", sql="select sum(notional) from {dataset};", expect="= 34"),
        check(name="true", sql="select count(*) = 5 from {dataset}", expect="= 1"),
    )  # fmt: skip
    failures = [verdict for verdict in verdicts if verdict.status != "PASS"]
    assert [(verdict.label, verdict.message) for verdict in failures] == []


def test_freshness_respects_its_where(lake: "SparkSession") -> None:
    (verdict,) = measure(
        lake, check(kind="freshness", column="traded_at", max_age="90m", where="open")
    )
    assert (verdict.status, verdict.measured) == ("FAIL", "2026-09-01T20:00:00+00:00")


def test_a_query_with_several_rows_or_none_fails_alone(lake: "SparkSession") -> None:
    several, none, fine = measure(
        lake,
        check(name="several", sql="select position_id from {dataset}", expect="= 1"),
        check(name="none", sql="select position_id from {dataset} where false", expect="= 1"),
        check(name="fine", sql="select 1", expect="= 1"),
    )
    assert (several.message, none.message, fine.status) == (
        "the query returned 5 rows; expected 1 row",
        "the query returned no value",
        "PASS",
    )


@pytest.mark.parametrize(
    "text",
    ["') or true or x in ('", "\\", "\\'", "${spark.app.name}", "a\nb", "`", "--", "é😀", "\0"],
)
def test_text_reaches_spark_unchanged(lake: "SparkSession", text: str) -> None:
    lake.createDataFrame([(text,)], ["product"]).createOrReplaceTempView("texts")
    accepted = check(kind="accepted_values", column="product", values=[text])
    audit = plan_audit([accepted], (), view="texts", references={})
    rows = lake.sql(audit.statement).collect()
    (verdict,) = judge(audit, audit.read(row.asDict() for row in rows), history=[], day_end=DAY_END)
    assert verdict.status == "PASS"


def test_ten_checks_of_single_rows_read_the_version_once(
    lake: "SparkSession", tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("scan")
    lake.table("positions").write.parquet(str(folder / "positions"))
    lake.read.parquet(str(folder / "positions")).createOrReplaceTempView("stored")
    checks = [
        check(kind="row_count", min=1),
        check(kind="row_count", min=1, where="open"),
        check(kind="not_null", columns=["book", "product"]),
        check(kind="not_null", columns=["notional"], where="open"),
        check(kind="accepted_values", column="product", values=["loan"]),
        check(kind="accepted_values", column="book", values=["A"], where="product = 'loan'"),
        check(kind="range", column="notional", min=0),
        check(kind="range", column="weight", max=1),
        check(kind="range", column="maturity", min="2026-09-01"),
        check(kind="freshness", column="traded_at", max_age="1d"),
    ]
    audit = plan_audit(checks, POSITIONS, view="stored", references={})
    (plan,) = lake.sql(f"explain {audit.statement}").collect()
    assert len(re.findall("FileScan parquet", plan[0])) == 1


@pytest.fixture
def stored(lake: "SparkSession") -> Iterator[str]:
    """The same positions as a table in the lake."""
    table = "lake.quality.positions"
    lake.sql("create namespace if not exists lake.quality").collect()
    lake.sql(f"create table {table} using iceberg as select * from positions").collect()
    lake.table(table).createOrReplaceTempView("stored")
    yield table
    lake.sql(f"drop table {table} purge").collect()


def test_skipping_files_by_statistics_changes_no_verdict(lake: "SparkSession", stored: str) -> None:
    checks = [
        check(**{**parts, "name": f"check_{index}"}) for index, (parts, _, _) in enumerate(FAILING)
    ]
    results = []
    for statistics in (False, True):
        audit = plan_audit(
            checks, POSITIONS, view="stored", references=REFERENCES, statistics=statistics
        )
        rows = lake.sql(audit.statement).collect()
        measured = audit.read(row.asDict() for row in rows)
        results.append(judge(audit, measured, history=[5], day_end=DAY_END))
    assert results[0] == results[1]
    assert {verdict.status for verdict in results[1][1:]} == {"FAIL"}


def test_checks_that_statistics_can_prove_read_no_rows(lake: "SparkSession", stored: str) -> None:
    (files,) = lake.sql(f"select collect_list(file_path) from {stored}.files").collect()
    for file in files[0]:
        Path(file.removeprefix("file:")).unlink()
    checks = [
        check(kind="row_count", min=5, max=5),
        check(kind="range", column="position_id", min=1, max=4),
        check(kind="range", column="maturity", min="2020-01-01"),
    ]
    optional = [column.model_copy(update={"nullable": True}) for column in POSITIONS]
    audit = plan_audit(checks, optional, view="stored", references={}, statistics=True)
    rows = lake.sql(audit.statement).collect()
    measured = audit.read(row.asDict() for row in rows)
    verdicts = judge(audit, measured, history=[5], day_end=DAY_END)
    assert [verdict.status for verdict in verdicts] == ["PASS"] * 3
