"""Version directories that no version leads to."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from floe.execution.maintenance.folders import own_location, stray_folders

NOW = datetime(2026, 9, 30, tzinfo=UTC)
SINCE = NOW - timedelta(days=30)
OLD = NOW - timedelta(days=2)


def put(root: Path, path: str, changed: datetime = OLD) -> Path:
    folder = root / path
    folder.mkdir(parents=True)
    os.utime(folder, (changed.timestamp(), changed.timestamp()))
    return folder


def strays(root: Path, location: str, *tags: str) -> list[str]:
    found = stray_folders(root, location, tags, SINCE, NOW)
    return [folder.relative_to(root).as_posix() for folder in found]


def test_only_what_no_version_has_is_a_stray(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01.1")
    put(tmp_path, "out/2026-09-01.2")
    put(tmp_path, "out/readme")
    assert strays(tmp_path, "out/{version}", "2026-09-01.2") == ["out/2026-09-01.1"]


def test_a_location_may_hold_other_places_around_the_version(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01/exposure_2026-09-01.1/data")
    put(tmp_path, "out/2026-09-01/positions_2026-09-01.1/data")
    location = "out/{business_date}/exposure_{version}/data"
    assert strays(tmp_path, location) == ["out/2026-09-01/exposure_2026-09-01.1/data"]


def test_what_is_young_or_older_than_the_catalog_is_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "out/2026-09-01.1", NOW - timedelta(hours=1))
    put(tmp_path, "out/2026-09-01.2", SINCE - timedelta(days=1))
    assert strays(tmp_path, "out/{version}") == []


def test_a_link_is_not_a_version(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/2026-09-01.1").symlink_to(put(tmp_path, "elsewhere"))
    assert strays(tmp_path, "out/{version}") == []


def test_the_folders_of_another_dataset_are_not_looked_at() -> None:
    assert own_location("a.b", "{dataset}/{business_date}") == "a.b/{business_date}/{version}"
    assert own_location("a.b", None) == ".floe/files/a.b/{version}"
