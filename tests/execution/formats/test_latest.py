"""The stable location of a feed, without Spark: there at every moment, and whole."""

import json
import threading
from pathlib import Path

from floe.execution.formats.locations import point_latest, withdraw_latest
from floe.execution.formats.storage import put_file
from floe.execution.site import Site
from tests.execution.formats.places import make_place, put


def test_whoever_follows_the_stable_location_always_finds_a_whole_version(site: Site) -> None:
    folders = [put(site.root / f"out/v{n}/data.csv", f"{n}\n" * 100).parent for n in (1, 2)]
    places = [make_place(tag=f"v{n}", feed={"latest": "out/latest"}) for n in (1, 2)]
    point_latest(site, places[0], folders[0])
    latest, wrong, done = site.root / "out/latest", [], threading.Event()

    def follow() -> None:
        while not done.is_set():
            text = (latest / "data.csv").read_text()
            named = json.loads(Path(f"{latest}.json").read_text())["version"]
            if text not in ("1\n" * 100, "2\n" * 100) or named not in ("v1", "v2"):
                wrong.append(text)

    reader = threading.Thread(target=follow)
    reader.start()
    for number in range(200):
        point_latest(site, places[number % 2], folders[number % 2])
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
    place = make_place(feed={"latest": "out/latest"})
    withdraw_latest(site, place, site.root / "out/v1")
    point_latest(site, place, put(site.root / "out/v1/data.csv", "").parent)
    withdraw_latest(site, place, site.root / "out/v2")
    assert (site.root / "out/latest/data.csv").exists()


def test_a_link_holds_where_the_disk_is_mounted_under_another_name(
    site: Site, tmp_path: Path
) -> None:
    folder = put(site.root / "out/v1/data.csv", "x").parent
    point_latest(site, make_place(feed={"latest": "out/latest"}), folder)
    (site.root / "out").rename(site.root / "moved")
    assert (site.root / "moved/latest/data.csv").read_text() == "x"


def test_a_file_is_put_in_place_whole_and_leaves_no_draft(tmp_path: Path) -> None:
    for content in (b"one", b"two"):
        put_file(tmp_path / "a/manifest.json", content)
    assert [path.read_bytes() for path in (tmp_path / "a").iterdir()] == [b"two"]
