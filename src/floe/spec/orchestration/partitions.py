"""Partitions: the keys that versions of a dataset are made for."""

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from floe.spec.base import SpecModel
from floe.spec.names import FunctionRef, Name
from floe.spec.values import Cron, Zone

Key = Annotated[str, Field(min_length=1)]


class TimeWindow(SpecModel):
    """One key for each window of time between two ticks of a cron expression."""

    type: Literal["time_window"]
    """`time_window`"""
    start: str
    """The first key, written as `fmt` says."""
    end: str | None = None
    """The key before which the windows end; without one they go on."""
    cron_schedule: Cron = "0 0 * * *"
    """When a window ends and the next begins; daily at midnight by default."""
    timezone: Zone | None = None
    """The zone of the windows, when not that of the project."""
    fmt: str = "%Y-%m-%d"
    """How keys are written, in the letters of strftime."""
    end_offset: int = 1
    """How many windows beyond the last complete one have a key; 1: today's exists today."""
    calendar: str | None = None
    """Days without business in this calendar have no key."""
    description: str = ""
    """What the partitions are."""


class StaticPartitions(SpecModel):
    """A fixed list of keys."""

    type: Literal["static"]
    """`static`"""
    partition_keys: Annotated[tuple[Key, ...], Field(min_length=1)]
    """The keys, in order."""
    description: str = ""
    """What the partitions are."""


class DynamicPartitions(SpecModel):
    """Keys that are added while the platform runs."""

    type: Literal["dynamic"]
    """`dynamic`"""
    fn: FunctionRef | None = None
    """A function that returns the keys; without one they come by API or CLI."""
    description: str = ""
    """What the partitions are."""


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
    """The dimensions by name: each the name of other partitions, or a definition in place."""
    description: str = ""
    """What the partitions are."""


Partitions = Annotated[
    TimeWindow | StaticPartitions | MultiPartitions | DynamicPartitions,
    Field(discriminator="type"),
]
