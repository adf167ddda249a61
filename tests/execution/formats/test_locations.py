"""Locations of versions: placeholders, directories, limits of the storage root."""

from datetime import date
from pathlib import Path

import pytest

from floe.execution.formats.contract import StoredVersion
from floe.execution.formats.locations import (
    LocationError,
    delivery_pattern,
    fill,
    known_folder,
    version_folder,
)
from floe.execution.formats.storage import RemoteStorageError
from floe.execution.site import Site
from tests.execution.formats.factory import make_site, make_version


def test_placeholders_are_filled_with_the_fields_of_the_version() -> None:
    version = make_version(partition="EMEA")
    text = "{dataset}/{business_date}/{partition}/{version}/{run_id}"
    assert fill(version, text) == "credit.positions/2026-09-01/EMEA/2026-09-01.1/run-1"


def test_without_a_partition_the_placeholder_is_the_business_date() -> None:
    assert fill(make_version(), "{partition}") == "2026-09-01"


def test_a_location_without_a_version_placeholder_gets_a_folder_per_version(site: Site) -> None:
    kept = version_folder(site, make_version(location="out/{business_date}/{version}"))
    assert kept == site.root / "out/2026-09-01/2026-09-01.1"
    added = version_folder(site, make_version(location="out/"))
    assert added == site.root / "out/2026-09-01.1"
    default = version_folder(site, make_version())
    assert default == site.root / ".floe/files/credit.positions/2026-09-01.1"


def test_locations_are_relative_to_the_root_of_the_storage_profile(tmp_path: Path) -> None:
    site = make_site(tmp_path, {"storage": {"default": {}, "feeds": {"root": "elsewhere"}}})
    version = make_version(location="out", storage="feeds")
    assert version_folder(site, version) == tmp_path / "elsewhere/out/2026-09-01.1"


@pytest.mark.parametrize("location", ["../out", "/etc/passwd", "a/{partition}/b"])
def test_a_location_outside_the_storage_root_is_rejected(site: Site, location: str) -> None:
    version = make_version(location=location, partition="../../..")
    with pytest.raises(LocationError, match=r"points outside .* storage"):
        version_folder(site, version)


def test_only_a_directory_that_contains_the_tag_belongs_to_a_version(site: Site) -> None:
    with pytest.raises(LocationError, match=r"is not a directory for 2026-09-01\.1 only"):
        known_folder(site, make_version(path=str(site.root / "data")))
    with pytest.raises(LocationError, match="points outside"):
        known_folder(site, make_version(path=str(site.root)))


def test_wildcards_in_a_partition_are_escaped(site: Site) -> None:
    version = make_version(location="landing/{partition}/*.csv", partition="a[1]")
    assert delivery_pattern(site, version) == site.root / "landing/a[[]1]/*.csv"


def test_a_placeholder_without_a_value_is_reported() -> None:
    bare = make_version()
    version = StoredVersion(bare.dataset, bare.spec, bare.tag, date(2026, 9, 1))
    with pytest.raises(LocationError, match=r"uses \{run_id\}"):
        fill(version, "out/{run_id}")


def test_a_storage_root_that_is_not_a_folder_is_reported(tmp_path: Path) -> None:
    site = make_site(tmp_path, {"storage": {"default": {"root": "s3://bucket"}}})
    with pytest.raises(RemoteStorageError, match="s3://bucket is not a folder"):
        version_folder(site, make_version())
