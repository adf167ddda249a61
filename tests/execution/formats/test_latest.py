"""The stable location of a feed, without Spark: always available and complete."""

import json
import threading
from pathlib import Path

from floe.execution.formats.locations import point_latest, withdraw_latest
from floe.execution.formats.storage import put_file
from floe.execution.site import Site
from tests.execution.formats.factory import make_version, put


def test_the_stable_location_always_shows_a_complete_version(site: Site) -> None:
    folders = [put(site.root / f"out/v{n}/data.csv", f"{n}\n" * 100).parent for n in (1, 2)]
    versions = [make_version(tag=f"v{n}", feed={"latest": "out/latest"}) for n in (1, 2)]
    point_latest(site, versions[0], folders[0])
    latest, wrong, done = site.root / "out/latest", [], threading.Event()

    def follow() -> None:
        while not done.is_set():
            text = (latest / "data.csv").read_text()
            named = json.loads(Path(f"{latest}.json").read_text())["version"]
            if text not in ("1\n" * 100, "2\n" * 100) or named not in ("v1", "v2"):
                wrong.append(text)

    reader = threading.Thread(target=follow)
    reader.start()
    for index in range(200):
        point_latest(site, versions[index % 2], folders[index % 2])
    done.set()
    reader.join()
    assert wrong == []
    assert sorted(path.name for path in (site.root / "out").iterdir()) == [
        "latest",
        "latest.json",
        "v1",
        "v2",
    ]


def test_a_stable_location_that_points_elsewhere_is_left_alone(site: Site) -> None:
    version = make_version(feed={"latest": "out/latest"})
    withdraw_latest(site, version, site.root / "out/v1")
    point_latest(site, version, put(site.root / "out/v1/data.csv", "").parent)
    withdraw_latest(site, version, site.root / "out/v2")
    assert (site.root / "out/latest/data.csv").exists()


def test_the_link_works_when_the_storage_is_mounted_elsewhere(site: Site, tmp_path: Path) -> None:
    folder = put(site.root / "out/v1/data.csv", "x").parent
    point_latest(site, make_version(feed={"latest": "out/latest"}), folder)
    (site.root / "out").rename(site.root / "moved")
    assert (site.root / "moved/latest/data.csv").read_text() == "x"


def test_a_file_is_replaced_atomically_and_leaves_no_draft(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        put_file(tmp_path / "a/manifest.json", content)
    assert [path.read_bytes() for path in (tmp_path / "a").iterdir()] == [b"two"]
