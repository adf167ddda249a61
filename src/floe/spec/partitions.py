"""Partition definitions, and how to parse and check the keys of time windows."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Annotated, Any, Literal

from croniter import croniter
from pydantic import Discriminator, Field, Tag

from floe.spec.base import SpecModel
from floe.spec.names import FunctionRef, Name
from floe.spec.values import Cron, Zone

Key = Annotated[str, Field(min_length=1)]


class TimeWindow(SpecModel):
    """One key for each time window between two ticks of a cron expression."""

    type: Literal["time_window"]
    """`time_window`"""
    start: str
    """First key, in the format `fmt`."""
    end: str | None = None
    """End of the windows (exclusive); by default they continue indefinitely."""
    cron_schedule: Cron = "0 0 * * *"
    """When one window ends and the next begins; by default daily at midnight."""
    timezone: Zone | None = None
    """Time zone of the windows; by default that of the project."""
    fmt: str = "%Y-%m-%d"
    """Format of the keys, as for strftime."""
    end_offset: int = 1
    """Number of windows after the last complete one that have a key; 1 includes today."""
    calendar: str | None = None
    """Calendar whose non-business days have no key."""
    description: str = ""
    """What the partitions are for."""


class StaticPartitions(SpecModel):
    """A fixed list of keys."""

    type: Literal["static"]
    """`static`"""
    partition_keys: Annotated[tuple[Key, ...], Field(min_length=1)]
    """The keys, in order."""
    description: str = ""
    """What the partitions are for."""


class DynamicPartitions(SpecModel):
    """Keys that are added at run time."""

    type: Literal["dynamic"]
    """`dynamic`"""
    fn: FunctionRef | None = None
    """Function that returns the keys; by default keys are added by API or CLI."""
    description: str = ""
    """What the partitions are for."""


def _dimension(value: Any) -> str | None:
    if isinstance(value, str):
        return "name"
    if isinstance(value, dict):
        return value.get("type")
    return getattr(value, "type", None)


Dimension = Annotated[
    Annotated[Name, Tag("name")]
    | Annotated[TimeWindow, Tag("time_window")]
    | Annotated[StaticPartitions, Tag("static")]
    | Annotated[DynamicPartitions, Tag("dynamic")],
    Discriminator(_dimension),
]


class MultiPartitions(SpecModel):
    """A key for each combination of two dimensions, one of them usually time."""

    type: Literal["multi"]
    """`multi`"""
    partitions: Annotated[dict[Name, Dimension], Field(min_length=2, max_length=2)]
    """The dimensions: each is the name of another definition, or an inline definition."""
    description: str = ""
    """What the partitions are for."""


Partitions = Annotated[
    TimeWindow | StaticPartitions | MultiPartitions | DynamicPartitions,
    Field(discriminator="type"),
]


def parse_key(window: TimeWindow, key: str) -> datetime | None:
    """Parse a key to a time in the window's zone; None if it is not a valid key."""
    try:
        return datetime.strptime(key, window.fmt)  # noqa: DTZ007 - wall time of the window's zone
    except ValueError:
        return None


def parse_bound(window: TimeWindow, bound: str) -> datetime | None:
    """Parse a `start` or `end`, which is a key or a plain date."""
    time = parse_key(window, bound)
    if time is not None:
        return time
    try:
        return datetime.combine(date.fromisoformat(bound), datetime.min.time())
    except ValueError:
        return None


def ticks(window: TimeWindow, start: datetime) -> Iterator[datetime]:
    """Yield the start times of windows from `start` on."""
    if croniter.match(window.cron_schedule, start):
        yield start
    steps = croniter(window.cron_schedule, start)
    while True:
        yield steps.get_next(datetime)


def is_tick(window: TimeWindow, time: datetime) -> bool:
    """Return whether a window begins at this time."""
    return bool(croniter.match(window.cron_schedule, time))
