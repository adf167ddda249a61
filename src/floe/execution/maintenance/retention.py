"""Decide which versions are past their retention. Pure: no clock, no database, no Spark."""

from collections.abc import Collection
from datetime import date, datetime, timedelta
from typing import Protocol

from pydantic_core import PydanticCustomError

from floe.catalog.versions import SUPERSEDED
from floe.errors import FloeError
from floe.spec import DatasetSpec, ProjectSpec
from floe.spec.promises import LegalHold, Retention
from floe.spec.values import format_duration, parse_duration

DEFAULT_AGE = timedelta(days=30)


class RetainError(FloeError):
    """How long to keep versions was not said as a duration."""

    exit_code = 2

    def __init__(self, text: str) -> None:
        super().__init__(f"'{text}' is not a duration. Write it as 12h, 30d or 4w.")


class VersionLike(Protocol):
    """What a decision needs to know of a version."""

    @property
    def dataset_version_id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def produced_at(self) -> datetime: ...


def parse_retain(text: str | None) -> timedelta | None:
    """Read how long to keep versions, as somebody typed it."""
    if text is None:
        return None
    try:
        return parse_duration(text)
    except PydanticCustomError:
        raise RetainError(text) from None


def retention_of(
    project: ProjectSpec, dataset: DatasetSpec, retain: timedelta | None = None
) -> Retention:
    """Return how long a dataset's versions are kept: as asked now, as declared, or 30 days.

    An age that is asked for now stands above the declared one. How many versions stay in any
    case is not a matter of age, and remains.
    """
    declared = dataset.retention or project.governance.default_retention or Retention()
    if retain is not None:
        return Retention(age=retain, versions=declared.versions)
    if declared.age is None and declared.versions is None:
        return Retention(age=DEFAULT_AGE)
    return declared


def is_in_force(hold: LegalHold | None, today: date) -> bool:
    """Tell whether a legal hold counts on a day; its last day is the one it names."""
    return hold is not None and (hold.until is None or today <= hold.until)


def why_past(
    version: VersionLike, retention: Retention, newest: Collection[int], now: datetime
) -> str | None:
    """Say why a version may go; None while it is to be kept.

    What was good once is kept by age and by number. What never was, or was taken back, is kept
    only for those who ask why, so its age alone decides.
    """
    superseded = version.state == SUPERSEDED
    if superseded and version.dataset_version_id in newest:
        return None
    if superseded and retention.age is None:
        return f"{retention.versions} newer ones are kept"
    age = DEFAULT_AGE if retention.age is None else retention.age
    if version.produced_at > now - age:
        return None
    return f"older than {format_duration(age)}"
