"""All checks of a version become one statement."""

from typing import Any

import pytest
from sqlglot import exp, parse_one

from floe.quality import Audit, UnusableCheckError, plan_audit
from tests.quality.factory import POSITIONS, check


def plan(*checks: Any, columns: Any = POSITIONS, **references: str) -> Audit:
    return plan_audit(checks, columns, view="positions", references=references)


def scans(audit: Audit) -> int:
    """How often the statement reads the version."""
    tree = parse_one(audit.statement, dialect="spark")
    return sum(table.name == "positions" for table in tree.find_all(exp.Table))


def test_without_checks_the_rows_are_counted_and_the_contract_is_measured() -> None:
    audit = plan()
    assert audit.row_count == "m0"
    assert audit.contract is not None
    assert audit.contract.nulls == {"position_id": "m1"}
    assert scans(audit) == 1


def test_a_schema_without_required_columns_has_no_contract() -> None:
    assert plan(columns=()).contract is None


def test_checks_of_single_rows_share_one_scan() -> None:
    audit = plan(
        check(kind="row_count", min=1),
        check(kind="not_null", columns=["book", "product"]),
        check(kind="accepted_values", column="product", values=["loan"], where="open"),
        check(kind="range", column="notional", min=0, where="book = 'A' -- only A"),
        check(kind="freshness", column="traded_at", max_age="1d", where="open"),
    )
    assert scans(audit) == 1


def test_a_condition_with_a_subquery_has_its_own_scan() -> None:
    where = "book in (select book from books)"
    audit = plan(
        check(kind="range", column="notional", min=0, where=where),
        check(kind="freshness", column="traded_at", max_age="1d", where=where),
    )
    assert scans(audit) == 2


def test_each_key_is_grouped_once_in_any_column_order_and_case() -> None:
    audit = plan(
        check(kind="unique", columns=["book", "product"]),
        check(kind="unique", columns=["Product", "BOOK"], name="again"),
        check(kind="unique", columns=["position_id"]),
    )
    assert scans(audit) == 3
    assert audit.planned[0].measures == audit.planned[1].measures


def test_the_same_measure_is_computed_once() -> None:
    audit = plan(check(kind="not_null", columns=["position_id"]), check(kind="row_count", min=1))
    assert audit.contract is not None
    assert audit.planned[0].measures == (audit.contract.rows,)
    assert audit.planned[1].measures == (audit.row_count,)


def test_measures_are_numbered_in_order() -> None:
    audit = plan(
        check(kind="unique", columns=["book"]),
        check(kind="referential", columns=["book"], dataset="ref.books"),
        check(sql="select count(*) from {dataset}", expect="> 0"),
        **{"ref.books": "books"},
    )
    names = [name for planned in audit.planned for name in planned.measures]
    assert names == ["m2", "m3", "m4", "m5", "m6"]


def test_a_missing_column_is_a_problem_only_of_its_check() -> None:
    audit = plan(check(kind="unique", columns=["bok"]), check(kind="not_null", columns=["BOOK"]))
    assert audit.planned[0].problem == "the version has no column 'bok'"
    assert audit.planned[1].problem is None
    assert "bok`" not in audit.statement


def test_without_a_schema_columns_are_not_checked() -> None:
    audit = plan(check(kind="range", column="x", max=5), columns=())
    assert "`x` > 5" in audit.statement


def test_a_reference_without_a_version_is_a_problem() -> None:
    audit = plan(check(kind="referential", columns=["book"], dataset="ref.books"))
    assert audit.planned[0].problem == "there is no version of ref.books to compare with"


@pytest.mark.parametrize(
    "sql",
    [
        "drop table {dataset}",
        "select 1; drop table {dataset}",
        "select 1; select 2",
        "delete from {dataset}",
        "insert into t select count(*) from {dataset}",
        "sql/forgotten.sql",
        "",
        ";",
        "select count(*) from {dataset} where (",
        "select " + "(" * 5000 + "1" + ")" * 5000,
        "select count(*) as n) as answer(number)) cross join (select 1",
    ],
)
def test_sql_that_is_not_a_single_select_is_rejected(sql: str) -> None:
    invalid = check(name="odd", sql=sql or " ", expect="= 0")
    with pytest.raises(UnusableCheckError, match=r"The check 'odd' cannot be used: its SQL "):
        plan(invalid)


@pytest.mark.parametrize("sql", ["select 1, 2", "select * from {dataset}"])
def test_sql_that_returns_several_columns_is_rejected(sql: str) -> None:
    with pytest.raises(UnusableCheckError, match="must return one column, not several"):
        plan(check(sql=sql, expect="= 0"))


@pytest.mark.parametrize(
    "where", ["1 = 1) or (2 = 2", "open; drop table t", "a as b", "a, b", "select 1", "open /*", ""]
)
def test_a_where_that_is_not_a_single_condition_is_rejected(where: str) -> None:
    with pytest.raises(UnusableCheckError, match=r"must be a single condition|is invalid"):
        plan(check(kind="not_null", columns=["book"], where=where))


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"kind": "range", "column": "maturity", "min": "soon"}, "Use a date, such as 2026-09-01"),
        ({"kind": "accepted_values", "column": "book", "values": [None]}, "has only nulls"),
    ],
)
def test_invalid_values_are_rejected(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(UnusableCheckError, match=reason):
        plan(check(**values))


def test_the_users_query_is_kept_verbatim() -> None:
    sql = (
        "with big as (select * from {dataset} where notional > 1e6)\nselect count(*) from big; -- é"
    )
    audit = plan(check(sql=sql, expect="< 10"))
    written = (
        "with big as (select * from `positions` where notional > 1e6)\nselect count(*) from big\n)"
    )
    assert written in audit.statement


def test_a_where_limits_the_rows_of_the_users_query() -> None:
    audit = plan(check(sql="select count(*) from {dataset} p", expect="= 0", where="open"))
    assert "from (SELECT * FROM `positions` WHERE (\nopen\n)) p" in audit.statement
