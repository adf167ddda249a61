"""Which versions are past their retention."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import pytest

from floe.execution.maintenance.retention import (
    RetainError,
    is_in_force,
    parse_retain,
    retention_of,
    why_past,
)
from floe.spec import DatasetSpec, ProjectSpec
from floe.spec.promises import LegalHold, Retention

NOW = datetime(2026, 9, 30, tzinfo=UTC)
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Version:
    dataset_version_id: int
    state: str
    produced_at: datetime


def made(days_ago: int, state: str = "SUPERSEDED", number: int = 1) -> Version:
    return Version(number, state, NOW - timedelta(days=days_ago))


def test_a_superseded_version_goes_when_it_is_old_enough() -> None:
    week = Retention(age=WEEK)
    assert why_past(made(8), week, (), NOW) == "older than 7d"
    assert why_past(made(6), week, (), NOW) is None


def test_the_newest_versions_stay_however_old_they_are() -> None:
    both = Retention(age=WEEK, versions=2)
    assert why_past(made(100, number=5), both, {5, 6}, NOW) is None
    assert why_past(made(100, number=4), both, {5, 6}, NOW) is not None


def test_a_number_alone_lets_go_of_all_others_at_once() -> None:
    two = Retention(versions=2)
    assert why_past(made(0, number=4), two, {5, 6}, NOW) == "2 newer ones are kept"


@pytest.mark.parametrize("state", ["RETRACTED", "REJECTED", "ABANDONED"])
def test_what_was_never_good_is_not_kept_for_its_number(state: str) -> None:
    two = Retention(versions=2)
    assert why_past(made(31, state, number=5), two, {5, 6}, NOW) == "older than 30d"
    assert why_past(made(29, state, number=5), two, {5, 6}, NOW) is None


def test_a_dataset_s_own_retention_stands_before_the_project_s() -> None:
    project = ProjectSpec.model_validate({"name": "p", "governance": {"default_retention": "90d"}})
    assert retention_of(project, DatasetSpec()).age == timedelta(days=90)
    own = DatasetSpec.model_validate({"retention": "7d"})
    assert retention_of(project, own).age == WEEK
    assert retention_of(ProjectSpec(name="p"), DatasetSpec()).age == timedelta(days=30)


def test_an_age_asked_for_now_stands_above_and_the_number_remains() -> None:
    spec = DatasetSpec.model_validate({"retention": {"age": "90d", "versions": 3}})
    assert retention_of(ProjectSpec(name="p"), spec, WEEK) == Retention(age=WEEK, versions=3)


def test_a_hold_counts_until_the_end_of_its_last_day() -> None:
    hold = LegalHold(reason="case 12", until=date(2026, 9, 30))
    assert is_in_force(hold, date(2026, 9, 30))
    assert not is_in_force(hold, date(2026, 10, 1))
    assert is_in_force(LegalHold(reason="case 12"), date(2099, 1, 1))
    assert not is_in_force(None, date(2026, 9, 30))


def test_a_duration_that_is_none_says_how_to_write_one() -> None:
    assert parse_retain("12h") == timedelta(hours=12)
    assert parse_retain(None) is None
    with pytest.raises(RetainError, match="Write it as 12h, 30d or 4w"):
        parse_retain("a month")
