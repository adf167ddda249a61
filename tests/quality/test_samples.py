"""Failing rows are shown where there are any to show."""

import pytest

from floe.quality import UnusableCheckError, sample_query
from floe.spec.checks import AnyCheck
from tests.quality.factory import check


@pytest.mark.parametrize(
    "one",
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
def test_what_fails_as_a_whole_has_no_failing_rows(one: AnyCheck) -> None:
    assert sample_query(one, "positions", 5) is None


def test_no_samples_need_no_query() -> None:
    assert sample_query(check(kind="not_null", columns=["book"]), "positions", 0) is None


def test_a_plain_count_shows_what_it_counts() -> None:
    one = check(sql="select count(*) n from {dataset} where x < 0;", expect="= 0", where="open")
    query = sample_query(one, "positions", 5)
    assert query == "SELECT * FROM (SELECT * FROM `positions` WHERE (open)) WHERE x < 0\nLIMIT 5"


def test_a_value_that_makes_no_sense_is_refused() -> None:
    one = check(kind="accepted_values", column="x", values=[None])
    with pytest.raises(UnusableCheckError, match="holds only nulls"):
        sample_query(one, "positions", 5)
