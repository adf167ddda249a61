"""Version directories and extracts on a disk that no version leads to any more."""

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, datetime, timedelta
from glob import escape
from pathlib import Path
from string import Formatter

GRACE = timedelta(days=1)
"""Whatever is younger may belong to a run that is at work."""
_TAG = r"[^/]+\.[0-9a-f]+"


def stray_folders(
    root: Path, location: str, tags: Collection[str], since: datetime, now: datetime
) -> Iterator[Path]:
    """Return the version directories below a root whose tags no version of the dataset has.

    Only what is a day old, and younger than the catalog's own memory of the dataset: a new
    catalog beside old data must not take all of it for rubbish.
    """
    for folder, tag in _version_folders(root, location):
        changed = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
        if tag not in tags and since <= changed <= now - GRACE:
            yield folder


def own_location(dataset: str, location: str | None) -> str:
    """Return where the versions of a dataset are that floe writes, as a pattern."""
    location = (location or f".floe/files/{dataset}").replace("{dataset}", dataset)
    return location if "{version}" in location else f"{location.rstrip('/')}/{{version}}"


def _version_folders(root: Path, location: str) -> Iterator[tuple[Path, str]]:
    """Return the folders that a location may have led to, each with its version's tag."""
    matches = re.compile(_pattern(location, re.escape, "[^/]+", f"(?P<version>{_TAG})"))
    for folder in sorted(root.glob(_pattern(location, escape, "*", "*"))):
        found = matches.fullmatch(folder.relative_to(root).as_posix())
        if found is not None and folder.is_dir() and not folder.is_symlink():
            yield folder, found["version"]


def _pattern(location: str, quote: Callable[[str], str], other: str, version: str) -> str:
    """Fill a location with patterns: the first place for the version with one, the rest alike."""
    parts, first = [], True
    for literal, name, _, _ in Formatter().parse(location):
        parts.append(quote(literal))
        if name is not None:
            here = name == "version" and first
            parts.append(version if here else other)
            first = first and not here
    return "".join(parts)
