"""Measures become verdicts with a reason."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, get_args

import pytest

from floe.catalog import checks as catalog_checks
from floe.quality import CONTRACT, Status, Verdict, judge, plan_audit
from floe.spec.checks import AnyCheck
from tests.quality.factory import POSITIONS, check

DAY_END = datetime(2026, 9, 2, tzinfo=UTC)


def verdict(
    judged: AnyCheck, *values: object, history: Sequence[int] = (), day_end: datetime = DAY_END
) -> Verdict:
    """The verdict on a check whose measures have these values, in their order."""
    audit = plan_audit([judged], (), view="positions", references={"ref.books": "books"})
    (planned,) = audit.planned
    measured = dict(zip(planned.measures, values, strict=False))
    (result,) = judge(audit, measured, history=history, day_end=day_end)
    return result


def micros(time: datetime) -> int:
    return (time - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def test_statuses_match_those_of_the_catalog() -> None:
    words = {catalog_checks.PASS, catalog_checks.FAIL, catalog_checks.WARN}
    assert set(get_args(Status)) == words


@pytest.mark.parametrize(
    ("values", "measured", "words"),
    [
        ({"kind": "not_null", "columns": ["book"]}, [3], "'book' is null in 3 rows"),
        (
            {"kind": "not_null", "columns": ["book", "product"]},
            [3, 1, 0],
            "'book' is null in 1 row",
        ),
        ({"kind": "unique", "columns": ["book"]}, [5, 2], "5 rows share 2 keys"),
        ({"kind": "range", "column": "x", "min": 0}, [1], "1 row violates the check"),
        (
            {"kind": "accepted_values", "column": "x", "values": [1]},
            [1200],
            "1,200 rows violate the check",
        ),
        (
            {"kind": "referential", "columns": ["book"], "dataset": "ref.books"},
            [2],
            "2 rows violate the check",
        ),
    ],
)
def test_rows_that_violate_a_check_fail_it(
    values: dict[str, Any], measured: list[int], words: str
) -> None:
    result = verdict(check(**values), *measured)
    assert (result.status, result.failed_rows, result.message) == ("FAIL", measured[0], words)
    passed = verdict(check(**values), *[0 for _ in measured])
    assert (passed.status, passed.failed_rows, passed.message) == ("PASS", 0, "passed")


def test_a_failure_only_warns_with_on_fail_warn() -> None:
    result = verdict(check(kind="unique", columns=["book"], on_fail="warn"), 2, 1)
    assert result.status == "WARN"


def test_a_verdict_has_the_label_and_kind_of_its_check() -> None:
    result = verdict(check(kind="unique", columns=["book", "product"]), 0, 0)
    assert (result.label, result.kind) == ("unique_book_product", "unique")


@pytest.mark.parametrize("values", [(), (None, None)])
def test_a_check_that_was_not_measured_fails(values: tuple[object, ...]) -> None:
    result = verdict(check(kind="unique", columns=["book"]), *values)
    assert (result.status, result.measured, result.message) == ("FAIL", None, "was not measured")


def test_a_check_that_cannot_be_measured_says_why() -> None:
    audit = plan_audit(
        [check(kind="not_null", columns=["bok"])], POSITIONS, view="v", references={}
    )
    result = judge(audit, {"m0": 1, "m1": 0}, history=[], day_end=DAY_END)[-1]
    assert result.message == "was not measured: the version has no column 'bok'"


# --- row counts


@pytest.mark.parametrize(
    ("bounds", "count", "status", "words"),
    [
        ({"min": 5}, 5, "PASS", "5 rows"),
        ({"min": 5}, 4, "FAIL", "4 rows, expected at least 5"),
        ({"max": 5}, 5, "PASS", "5 rows"),
        ({"max": 1000}, 1200, "FAIL", "1,200 rows, expected at most 1,000"),
        ({"min": 0}, 0, "PASS", "0 rows"),
    ],
)
def test_a_row_count_is_compared_with_its_bounds(
    bounds: Mapping[str, int], count: int, status: str, words: str
) -> None:
    result = verdict(check(kind="row_count", **bounds), count)
    assert (result.status, result.measured, result.message) == (status, count, words)


@pytest.mark.parametrize(
    ("count", "history", "status"),
    [
        (120, [100, 100], "PASS"),
        (121, [100, 100], "FAIL"),
        (80, [100], "PASS"),
        (79, [100], "FAIL"),
        (120, [90, 110, 900], "PASS"),  # the third is not compared
        (0, [0, 0], "PASS"),
        (1, [0, 0], "FAIL"),
    ],
)
def test_a_row_count_may_deviate_from_the_mean_by_max_change(
    count: int, history: list[int], status: str
) -> None:
    declared = check(kind="row_count", max_change="20%", compared_to=2)
    assert verdict(declared, count, history=history).status == status


def test_a_jump_reports_its_size() -> None:
    result = verdict(check(kind="row_count", max_change="20%", min=1), 50, history=[100, 100])
    assert result.message == "50 rows, 50.0% off 100, the mean of the last 2 versions"
    assert result.expected == "at least 1 and within 20% of the mean 100"


def test_the_first_version_passes_without_a_comparison() -> None:
    result = verdict(check(kind="row_count", max_change="20%"), 7)
    assert result.status == "PASS"
    assert result.message == "7 rows; there is no earlier version to compare with"


def test_a_row_count_with_where_is_compared_with_its_own_history() -> None:
    declared = check(kind="row_count", name="open_ones", max_change="20%", where="open")
    audit = plan_audit([declared], (), view="v", references={})
    known: dict[str, Any] = {"history": [1000], "day_end": DAY_END}
    (alone,) = judge(audit, {"m0": 1000, "m1": 10}, **known)
    (compared,) = judge(audit, {"m0": 1000, "m1": 10}, histories={"open_ones": [20]}, **known)
    assert (alone.status, compared.status) == ("PASS", "FAIL")


# --- freshness


@pytest.mark.parametrize(
    ("age", "status"),
    [(timedelta(0), "PASS"), (timedelta(hours=2), "PASS"), (timedelta(hours=2, seconds=1), "FAIL")],
)
def test_the_newest_value_may_be_at_most_max_age_old_at_the_end_of_the_day(
    age: timedelta, status: str
) -> None:
    declared = check(kind="freshness", column="traded_at", max_age="2h")
    assert verdict(declared, micros(DAY_END - age)).status == status


def test_the_end_of_the_day_may_be_in_any_zone() -> None:
    declared = check(kind="freshness", column="traded_at", max_age="2h")
    tokyo = datetime(2026, 9, 2, tzinfo=timezone(timedelta(hours=9)))
    result = verdict(declared, micros(DAY_END - timedelta(hours=10)), day_end=tokyo)
    assert (result.status, result.measured) == ("PASS", "2026-09-01T14:00:00+00:00")


def test_a_stale_version_reports_its_age() -> None:
    result = verdict(
        check(kind="freshness", column="traded_at", max_age="2h"),
        micros(DAY_END - timedelta(hours=3)),
    )
    assert result.message == (
        "the newest value is 2026-09-01T21:00:00+00:00, 3h before 2026-09-02T00:00:00+00:00"
    )
    assert result.expected == "at most 2h before the end of the business date"


def test_a_value_of_the_next_day_is_fresh() -> None:
    result = verdict(
        check(kind="freshness", column="traded_at", max_age="2h"),
        micros(DAY_END + timedelta(hours=3)),
    )
    assert result.status == "PASS"
    assert result.message.endswith("after the end of the business date")


def test_a_version_without_any_timestamp_is_not_fresh() -> None:
    result = verdict(check(kind="freshness", column="traded_at", max_age="2h"), None)
    assert (result.status, result.message) == ("FAIL", "no row has a value in 'traded_at'")


# --- the user's own queries


@pytest.mark.parametrize(
    ("expect", "met", "missed"),
    [
        ("= 0", [0, Decimal(0), 0.0, False], [1, -1]),
        ("!= 0", [1], [0]),
        ("< 5", [4.9], [5]),
        ("<= 5", [5], [5.1]),
        ("> 5", [6], [5]),
        (">= 5", [5], [4]),
        ("between 1 and 5", [1, 3, 5], [0, 6]),
        ("0.5", [Decimal("0.5")], [0.4, float("nan")]),
    ],
)
def test_a_query_result_must_meet_its_expectation(
    expect: str, met: list[Any], missed: list[Any]
) -> None:
    declared = check(sql="select max(x) from {dataset}", expect=expect)
    assert {verdict(declared, value, 1).status for value in met} == {"PASS"}
    assert {verdict(declared, value, 1).status for value in missed} == {"FAIL"}


@pytest.mark.parametrize(
    ("value", "rows", "words"),
    [
        (None, 1, "the query returned no value"),
        (None, 0, "the query returned no value"),
        ("abc", 1, "the query returned 'abc', which is not a number"),
        (0, 3, "the query returned 3 rows; expected 1 row"),
        (7, 1, "the query returned 7; expected = 0"),
    ],
)
def test_an_unexpected_query_result_fails(value: object, rows: int, words: str) -> None:
    result = verdict(check(sql="select max(x) from {dataset}", expect="= 0"), value, rows)
    assert (result.status, result.message) == ("FAIL", words)


def test_a_count_that_is_expected_to_be_zero_gives_the_failed_rows() -> None:
    sql = "select count(*) from {dataset} where x < 0"
    assert verdict(check(sql=sql, expect="= 0"), 4, 1).failed_rows == 4
    assert verdict(check(sql=sql, expect="> 9"), 4, 1).failed_rows is None


# --- the contract


@pytest.mark.parametrize(
    ("nulls", "status", "words"),
    [(0, "PASS", "passed"), (2, "FAIL", "'position_id' is null in 2 rows")],
)
def test_a_required_column_is_judged_without_a_check(nulls: int, status: str, words: str) -> None:
    audit = plan_audit([], POSITIONS, view="v", references={})
    (result,) = judge(audit, {"m0": 9, "m1": nulls}, history=[], day_end=DAY_END)
    assert (result.label, result.kind, result.status) == (CONTRACT, CONTRACT, status)
    assert (result.failed_rows, result.message) == (nulls, words)


def test_a_contract_that_was_not_measured_fails() -> None:
    audit = plan_audit([], POSITIONS, view="v", references={})
    (result,) = judge(audit, {}, history=[], day_end=DAY_END)
    assert (result.status, result.message) == ("FAIL", "was not measured")
