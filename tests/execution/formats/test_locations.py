"""Where versions live: placeholders, version directories, and staying inside the storage."""

from datetime import date
from pathlib import Path

import pytest

from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.locations import (
    LocationError,
    delivery_pattern,
    fill,
    known_folder,
    version_folder,
)
from floe.execution.formats.storage import RemoteStorageError
from floe.execution.site import Site
from tests.execution.formats.places import make_place, make_site


def test_placeholders_stand_for_what_the_version_is() -> None:
    place = make_place(partition="EMEA")
    text = "{dataset}/{business_date}/{partition}/{version}/{run_id}"
    assert fill(place, text) == "credit.positions/2026-09-01/EMEA/2026-09-01.1/run-1"


def test_the_partition_of_a_version_without_one_is_its_business_date() -> None:
    assert fill(make_place(), "{partition}") == "2026-09-01"


def test_a_location_without_its_version_gets_a_folder_for_each(site: Site) -> None:
    kept = version_folder(site, make_place(location="out/{business_date}/{version}"))
    assert kept == site.root / "out/2026-09-01/2026-09-01.1"
    added = version_folder(site, make_place(location="out/"))
    assert added == site.root / "out/2026-09-01.1"
    default = version_folder(site, make_place())
    assert default == site.root / ".floe/files/credit.positions/2026-09-01.1"


def test_the_storage_profile_says_where_locations_start(tmp_path: Path) -> None:
    site = make_site(tmp_path, {"storage": {"default": {}, "feeds": {"root": "elsewhere"}}})
    place = make_place(location="out", storage="feeds")
    assert version_folder(site, place) == tmp_path / "elsewhere/out/2026-09-01.1"


@pytest.mark.parametrize("location", ["../out", "/etc/passwd", "a/{partition}/b"])
def test_a_location_outside_the_storage_root_is_rejected(site: Site, location: str) -> None:
    place = make_place(location=location, partition="../../..")
    with pytest.raises(LocationError, match=r"points outside .* storage"):
        version_folder(site, place)


def test_only_the_directory_of_a_version_itself_is_taken_for_one(site: Site) -> None:
    with pytest.raises(LocationError, match=r"is not a directory of 2026-09-01\.1 only"):
        known_folder(site, make_place(path=str(site.root / "data")))
    with pytest.raises(LocationError, match="points outside"):
        known_folder(site, make_place(path=str(site.root)))


def test_a_partition_is_never_read_as_a_pattern(site: Site) -> None:
    place = make_place(location="landing/{partition}/*.csv", partition="a[1]")
    assert delivery_pattern(site, place) == site.root / "landing/a[[]1]/*.csv"


def test_a_placeholder_without_a_value_is_named() -> None:
    bare = make_place()
    place = VersionPlace(bare.dataset, bare.spec, bare.tag, date(2026, 9, 1))
    with pytest.raises(LocationError, match=r"uses \{run_id\}"):
        fill(place, "out/{run_id}")


def test_a_storage_that_is_no_folder_is_named(tmp_path: Path) -> None:
    site = make_site(tmp_path, {"storage": {"default": {"root": "s3://bucket"}}})
    with pytest.raises(RemoteStorageError, match="s3://bucket is not a folder"):
        version_folder(site, make_place())
