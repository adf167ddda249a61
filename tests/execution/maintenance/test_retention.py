"""Which versions are past their retention."""

import os
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from floe.execution.maintenance.retention import (
    RetainError,
    is_in_force,
    own_location,
    parse_retain,
    removal_reason,
    retention_of,
    stray_folders,
)
from floe.spec import DatasetSpec, ProjectSpec
from floe.spec.governance import LegalHold, Retention

NOW = datetime(2026, 9, 30, tzinfo=UTC)
WEEK = timedelta(days=7)

SINCE = NOW - timedelta(days=30)
OLD = NOW - timedelta(days=2)


@dataclass(frozen=True)
class Version:
    dataset_version_id: int
    state: str
    produced_at: datetime


def version(days_ago: int, state: str = "SUPERSEDED", version_id: int = 1) -> Version:
    return Version(version_id, state, NOW - timedelta(days=days_ago))


def test_an_old_superseded_version_is_removed() -> None:
    week = Retention(age=WEEK)
    assert removal_reason(version(8), week, (), NOW) == "older than 7d"
    assert removal_reason(version(6), week, (), NOW) is None


def test_the_newest_versions_stay_regardless_of_age() -> None:
    both = Retention(age=WEEK, versions=2)
    assert removal_reason(version(100, version_id=5), both, {5, 6}, NOW) is None
    assert removal_reason(version(100, version_id=4), both, {5, 6}, NOW) is not None


def test_a_count_without_an_age_removes_all_other_versions_immediately() -> None:
    two = Retention(versions=2)
    assert removal_reason(version(0, version_id=4), two, {5, 6}, NOW) == "2 newer versions are kept"


@pytest.mark.parametrize("state", ["RETRACTED", "REJECTED", "ABANDONED"])
def test_versions_that_were_never_good_are_not_counted(state: str) -> None:
    two = Retention(versions=2)
    assert removal_reason(version(31, state, version_id=5), two, {5, 6}, NOW) == "older than 30d"
    assert removal_reason(version(29, state, version_id=5), two, {5, 6}, NOW) is None


def test_a_datasets_own_retention_overrides_the_projects() -> None:
    project = ProjectSpec.model_validate({"name": "p", "governance": {"default_retention": "90d"}})
    assert retention_of(project, DatasetSpec()).age == timedelta(days=90)
    own = DatasetSpec.model_validate({"retention": "7d"})
    assert retention_of(project, own).age == WEEK
    assert retention_of(ProjectSpec(name="p"), DatasetSpec()).age == timedelta(days=30)


def test_a_given_age_overrides_the_declared_one_but_not_the_count() -> None:
    spec = DatasetSpec.model_validate({"retention": {"age": "90d", "versions": 3}})
    assert retention_of(ProjectSpec(name="p"), spec, WEEK) == Retention(age=WEEK, versions=3)


def test_a_hold_applies_until_the_end_of_its_last_day() -> None:
    hold = LegalHold(reason="case 12", until=date(2026, 9, 30))
    assert is_in_force(hold, date(2026, 9, 30))
    assert not is_in_force(hold, date(2026, 10, 1))
    assert is_in_force(LegalHold(reason="case 12"), date(2099, 1, 1))
    assert not is_in_force(None, date(2026, 9, 30))


def test_an_invalid_duration_says_how_to_write_one() -> None:
    assert parse_retain("12h") == timedelta(hours=12)
    assert parse_retain(None) is None
    with pytest.raises(RetainError, match="Write it as 12h, 30d or 4w"):
        parse_retain("a month")


def put(root: Path, path: str, changed: datetime = OLD) -> Path:
    folder = root / path
    folder.mkdir(parents=True)
    os.utime(folder, (changed.timestamp(), changed.timestamp()))
    return folder


def strays(root: Path, location: str, *tags: str) -> list[str]:
    folders = stray_folders(root, location, tags, SINCE, NOW)
    return [folder.relative_to(root).as_posix() for folder in folders]


def test_only_directories_without_a_version_are_stray(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01.1")
    put(tmp_path, "out/2026-09-01.2")
    put(tmp_path, "out/readme")
    assert strays(tmp_path, "out/{version}", "2026-09-01.2") == ["out/2026-09-01.1"]


def test_a_location_may_have_other_placeholders(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01/exposure_2026-09-01.1/data")
    put(tmp_path, "out/2026-09-01/positions_2026-09-01.1/data")
    location = "out/{business_date}/exposure_{version}/data"
    assert strays(tmp_path, location) == ["out/2026-09-01/exposure_2026-09-01.1/data"]


def test_young_directories_and_those_older_than_the_catalog_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01.1", NOW - timedelta(hours=1))
    put(tmp_path, "out/2026-09-01.2", SINCE - timedelta(days=1))
    assert strays(tmp_path, "out/{version}") == []


def test_a_link_is_not_a_version(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/2026-09-01.1").symlink_to(put(tmp_path, "elsewhere"))
    assert strays(tmp_path, "out/{version}") == []


def test_folders_of_other_datasets_are_not_searched() -> None:
    assert own_location("a.b", "{dataset}/{business_date}") == "a.b/{business_date}/{version}"
    assert own_location("a.b", None) == ".floe/files/a.b/{version}"
