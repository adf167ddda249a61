"""Where a version's files are: the placeholders of a location filled in, inside the storage."""

import os
from collections.abc import Callable, Mapping
from glob import escape
from pathlib import Path
from string import Formatter

from floe.errors import FloeError
from floe.execution.formats.contract import VersionPlace
from floe.execution.formats.storage import storage_folder
from floe.execution.site import Site


class LocationError(FloeError):
    """A location does not lead to a place for this version."""

    def __init__(self, dataset: str, location: str, reason: str) -> None:
        super().__init__(f"The location '{location}' of '{dataset}' {reason}")


def fill(place: VersionPlace, location: str, quote: Callable[[str], str] = str) -> str:
    """Fill in the placeholders of a location."""
    values = _values(place)
    wanted = {name for _, name, _, _ in Formatter().parse(location) if name is not None}
    if missing := sorted(wanted - values.keys()):
        reason = f"asks for {{{missing[0]}}}, which this version does not have."
        raise LocationError(place.dataset, location, reason)
    return location.format_map({name: quote(value) for name, value in values.items()})


def _values(place: VersionPlace) -> Mapping[str, str]:
    values = {
        "business_date": place.business_date.isoformat(),
        "partition": place.key,
        "version": place.tag,
        "dataset": place.dataset,
        "run_id": place.run_id,
    }
    return {name: value for name, value in values.items() if value is not None}


def confine(site: Site, place: VersionPlace, location: str) -> Path:
    """Return the path of a filled location; refuse one that leads out of the storage."""
    root = storage_folder(site, place.spec)
    path = Path(os.path.normpath(root / location))
    if path == root or not path.is_relative_to(root):
        reason = (
            f"leads out of {root}. Keep files inside the storage root, or declare a storage "
            "profile in platform.yaml whose root is there."
        )
        raise LocationError(place.dataset, location, reason)
    return path


def version_folder(site: Site, place: VersionPlace) -> Path:
    """Return the folder that a version written here gets for itself alone."""
    location = place.spec.location or f".floe/files/{place.dataset}"
    if "{version}" not in location:
        location = f"{location.rstrip('/')}/{{version}}"
    return confine(site, place, fill(place, location))


def known_folder(site: Site, place: VersionPlace) -> Path:
    """Return the folder that the catalog keeps for a version, else where it would be."""
    if place.path is None:
        return version_folder(site, place)
    folder = confine(site, place, place.path)
    # Every version directory is named by its tag. What is not may hold anything.
    if place.tag not in str(folder.relative_to(storage_folder(site, place.spec))):
        raise LocationError(place.dataset, place.path, f"is not a directory of {place.tag} alone.")
    return folder


def delivery_pattern(site: Site, place: VersionPlace) -> Path:
    """Return the pattern that the files of a delivery match."""
    location = place.spec.location or f"{place.dataset}/{{partition}}/*"
    return confine(site, place, fill(place, location, escape))


def stable_path(site: Site, place: VersionPlace, location: str) -> Path:
    """Return the path of a feed's stable location, or of a manifest."""
    return confine(site, place, fill(place, location))
