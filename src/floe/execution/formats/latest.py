"""The stable location of a feed: a link to its newest version, and a file that says which."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from floe.errors import FloeError
from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.locations import stable_path
from floe.execution.formats.storage import put_file, put_link, sync_path
from floe.execution.site import Site


class LatestOccupiedError(FloeError):
    """Something that floe did not put there stands at a feed's stable location."""

    def __init__(self, dataset: str, path: Path) -> None:
        super().__init__(
            f"The stable location {path} of '{dataset}' is not a link of floe's. "
            "Move away what is there, or give feed.latest another path."
        )


def point_latest(site: Site, place: VersionPlace, folder: Path) -> Mapping[str, Any]:
    """Let the stable location of a feed lead to this version."""
    link = _link(site, place)
    if link.exists() and not link.is_symlink():
        raise LatestOccupiedError(place.dataset, link)
    put_link(link, folder)
    put_file(_pointer_file(link), _pointer(place, folder))
    return {"latest": str(link)}


def withdraw_latest(site: Site, place: VersionPlace, folder: Path) -> None:
    """Let the stable location of a feed lead nowhere, if it leads to this version."""
    link = _link(site, place)
    if link.is_symlink() and link.resolve() == folder.resolve():
        _pointer_file(link).unlink(missing_ok=True)
        link.unlink()
        sync_path(link.parent)


def _link(site: Site, place: VersionPlace) -> Path:
    assert place.spec.feed is not None
    return stable_path(site, place, place.spec.feed.latest)


def _pointer_file(link: Path) -> Path:
    return link.with_name(f"{link.name}.json")


def _pointer(place: VersionPlace, folder: Path) -> bytes:
    about = {
        "dataset": place.dataset,
        "version": place.tag,
        "business_date": place.business_date.isoformat(),
        "path": str(folder),
    }
    return (json.dumps(about, indent=2) + "\n").encode()
