"""Locations of a version's files, and the stable location of a feed.

A location is a pattern with placeholders, relative to the storage root; it must stay inside it.
The stable location is a link to the newest version, with a JSON file beside it that names it.
"""

import json
import os
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from string import Formatter
from typing import Any

from floe.errors import FloeError
from floe.execution.formats.contract import StoredVersion
from floe.execution.formats.storage import put_file, put_link, storage_folder, sync_path
from floe.execution.site import Site


class LocationError(FloeError):
    """A dataset's location is invalid for this version."""

    def __init__(self, dataset: str, location: str, reason: str) -> None:
        super().__init__(f"The location '{location}' of '{dataset}' {reason}")


class LatestOccupiedError(FloeError):
    """A feed's stable location is taken by something that floe did not create."""

    def __init__(self, dataset: str, path: Path) -> None:
        super().__init__(
            f"The stable location {path} of '{dataset}' already exists and is not a link. "
            "Move it away, or set feed.latest to another path."
        )


def fill(version: StoredVersion, location: str, quote: Callable[[str], str] = str) -> str:
    """Fill in the placeholders of a location."""
    values = _values(version)
    used = {name for _, name, _, _ in Formatter().parse(location) if name is not None}
    if missing := sorted(used - values.keys()):
        reason = f"uses {{{missing[0]}}}, which this version does not have."
        raise LocationError(version.dataset, location, reason)
    return location.format_map({name: quote(value) for name, value in values.items()})


def _values(version: StoredVersion) -> Mapping[str, str]:
    values = {
        "business_date": version.business_date.isoformat(),
        "partition": version.key,
        "version": version.tag,
        "dataset": version.dataset,
        "run_id": version.run_id,
    }
    return {name: value for name, value in values.items() if value is not None}


def confine(site: Site, version: StoredVersion, location: str) -> Path:
    """Return the path of a filled-in location; raise if outside the storage root."""
    root = storage_folder(site, version.spec)
    path = Path(os.path.normpath(root / location))
    if path == root or not path.is_relative_to(root):
        reason = (
            f"points outside {root}. Keep files inside the storage root, or declare a storage "
            "profile in platform.yaml with that root."
        )
        raise LocationError(version.dataset, location, reason)
    return path


def version_folder(site: Site, version: StoredVersion) -> Path:
    """Return the folder that floe writes a version to; no other version shares it."""
    location = version.spec.location or f".floe/files/{version.dataset}"
    if "{version}" not in location:
        location = f"{location.rstrip('/')}/{{version}}"
    return confine(site, version, fill(version, location))


def known_folder(site: Site, version: StoredVersion) -> Path:
    """Return the folder that the catalog records for a version, or its default folder."""
    if version.path is None:
        return version_folder(site, version)
    folder = confine(site, version, version.path)
    # Version directories carry their tag; any other folder may hold somebody else's files.
    if version.tag not in str(folder.relative_to(storage_folder(site, version.spec))):
        raise LocationError(
            version.dataset, version.path, f"is not a directory for {version.tag} only."
        )
    return folder


def delivery_pattern(site: Site, version: StoredVersion) -> Path:
    """Return the pattern that the files of a delivery match."""
    location = version.spec.location or f"{version.dataset}/{{partition}}/*"
    return confine(site, version, fill(version, location, escape))


def stable_path(site: Site, version: StoredVersion, location: str) -> Path:
    """Return the path of a feed's stable location, or of a manifest file."""
    return confine(site, version, fill(version, location))


def point_latest(site: Site, version: StoredVersion, folder: Path) -> Mapping[str, Any]:
    """Point a feed's stable location at this version."""
    link = _link(site, version)
    if link.exists() and not link.is_symlink():
        raise LatestOccupiedError(version.dataset, link)
    put_link(link, folder)
    put_file(_pointer_file(link), _pointer(version, folder))
    return {"latest": str(link)}


def withdraw_latest(site: Site, version: StoredVersion, folder: Path) -> None:
    """Remove a feed's stable location if it points at this version."""
    link = _link(site, version)
    if link.is_symlink() and link.resolve() == folder.resolve():
        _pointer_file(link).unlink(missing_ok=True)
        link.unlink()
        sync_path(link.parent)


def _link(site: Site, version: StoredVersion) -> Path:
    assert version.spec.feed is not None
    return stable_path(site, version, version.spec.feed.latest)


def _pointer_file(link: Path) -> Path:
    return link.with_name(f"{link.name}.json")


def _pointer(version: StoredVersion, folder: Path) -> bytes:
    content = {
        "dataset": version.dataset,
        "version": version.tag,
        "business_date": version.business_date.isoformat(),
        "path": str(folder),
    }
    return (json.dumps(content, indent=2) + "\n").encode()
