"""Decide which versions and directories are past their retention. Pure."""

import re
from collections.abc import Callable, Collection, Iterator
from datetime import UTC, date, datetime, timedelta
from glob import escape
from pathlib import Path
from string import Formatter
from typing import Protocol

from pydantic_core import PydanticCustomError

from floe.catalog.versions import SUPERSEDED
from floe.errors import FloeError
from floe.spec import DatasetSpec, ProjectSpec
from floe.spec.governance import LegalHold, Retention
from floe.spec.values import format_duration, parse_duration

DEFAULT_AGE = timedelta(days=30)

GRACE = timedelta(days=1)
"""Younger folders may belong to an active run."""
_TAG = r"[^/]+\.[0-9a-f]+"


class RetainError(FloeError):
    """The retention is not a valid duration."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(f"'{text}' is not a duration. Write it as 12h, 30d or 4w.")


class VersionLike(Protocol):
    """The attributes of a version that retention depends on."""

    @property
    def dataset_version_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def produced_at(self) -> datetime: ...


def parse_retain(text: str | None) -> timedelta | None:
    """Parse a retention given on the command line."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except PydanticCustomError:
        raise RetainError(text) from None


def retention_of(
    project: ProjectSpec, dataset: DatasetSpec, retain: timedelta | None = None
) -> Retention:
    """Return a dataset's retention: `retain`, else as declared, else 30 days.

    `retain` overrides the declared age, but not the declared number of versions to keep.
    """
    declared = dataset.retention or project.governance.default_retention or Retention()
    if retain is not None:
        return Retention(age=retain, versions=declared.versions)
    if declared.age is None and declared.versions is None:
        return Retention(age=DEFAULT_AGE)
    return declared


def is_in_force(hold: LegalHold | None, today: date) -> bool:
    """Tell whether a legal hold applies on a day; `until` is its last day."""
    return hold is not None and (hold.until is None or today <= hold.until)


def removal_reason(
    version: VersionLike, retention: Retention, newest: Collection[int], now: datetime
) -> str | None:
    """Return why a version may be removed, or None if it must be kept.

    A SUPERSEDED version is kept by age and by number of versions. For rejected, abandoned and
    retracted ones only the age counts, because they are kept just for investigation.
    """
    superseded = version.state == SUPERSEDED
    if superseded and version.dataset_version_id in newest:
        return None
    if superseded and retention.age is None:
        return f"{retention.versions} newer versions are kept"
    age = DEFAULT_AGE if retention.age is None else retention.age
    if version.produced_at > now - age:
        return None
    return f"older than {format_duration(age)}"


def stray_folders(
    root: Path, location: str, tags: Collection[str], since: datetime, now: datetime
) -> Iterator[Path]:
    """Return the version directories below a root whose tags belong to no version.

    Only directories at least a day old, and newer than the dataset's row in the catalog: with a
    new catalog, existing data must not be removed.
    """
    for folder, tag in _version_folders(root, location):
        changed = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
        if tag not in tags and since <= changed <= now - GRACE:
            yield folder


def own_location(dataset: str, location: str | None) -> str:
    """Return the path pattern of a dataset's version directories."""
    location = (location or f".floe/files/{dataset}").replace("{dataset}", dataset)
    return location if "{version}" in location else f"{location.rstrip('/')}/{{version}}"


def _version_folders(root: Path, location: str) -> Iterator[tuple[Path, str]]:
    """Return the folders that match a location, each with its version's tag."""
    matches = re.compile(_pattern(location, re.escape, "[^/]+", f"(?P<version>{_TAG})"))
    for folder in sorted(root.glob(_pattern(location, escape, "*", "*"))):
        match = matches.fullmatch(folder.relative_to(root).as_posix())
        if match is not None and folder.is_dir() and not folder.is_symlink():
            yield folder, match["version"]


def _pattern(location: str, quote: Callable[[str], str], other: str, version: str) -> str:
    """Build a pattern: `version` for the first {version}, `other` for the rest."""
    parts, first = [], True
    for literal, name, _, _ in Formatter().parse(location):
        parts.append(quote(literal))
        if name is not None:
            here = name == "version" and first
            parts.append(version if here else other)
            first = first and not here
    return "".join(parts)
