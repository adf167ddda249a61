"""A failed check shows sample rows if it has any."""

import pytest

from floe.quality import UnusableCheckError, sample_query
from floe.spec.checks import AnyCheck
from tests.quality.factory import check


@pytest.mark.parametrize(
    "whole_check",
    [
        check(kind="row_count", min=1),
        check(kind="freshness", column="at", max_age="1d"),
        check(kind="referential", columns=["book"], dataset="ref.books"),
        check(sql="select count(*) from {dataset}", expect="> 0"),
        check(sql="select max(x) from {dataset}", expect="= 0"),
        check(sql="select count(*) from {dataset} group by x", expect="= 0"),
        check(sql="select count(distinct x) from {dataset}", expect="= 0"),
    ],
)
def test_checks_of_the_whole_version_have_no_failing_rows(whole_check: AnyCheck) -> None:
    assert sample_query(whole_check, "positions", 5) is None


def test_a_limit_of_zero_needs_no_query() -> None:
    assert sample_query(check(kind="not_null", columns=["book"]), "positions", 0) is None


def test_a_plain_count_shows_the_rows_it_counts() -> None:
    open_count = check(
        sql="select count(*) n from {dataset} where x < 0;", expect="= 0", where="open"
    )
    query = sample_query(open_count, "positions", 5)
    assert query == "SELECT * FROM (SELECT * FROM `positions` WHERE (open)) WHERE x < 0\nLIMIT 5"


def test_a_list_of_only_nulls_is_rejected() -> None:
    only_nulls = check(kind="accepted_values", column="x", values=[None])
    with pytest.raises(UnusableCheckError, match="has only nulls"):
        sample_query(only_nulls, "positions", 5)
