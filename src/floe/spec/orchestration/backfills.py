"""Backfills: ranges of partitions that a job makes in batches."""

from typing import Annotated

from pydantic import Field

from floe.spec.base import SpecModel


class PartitionRange(SpecModel):
    """From one partition key to another, both included."""

    start: str
    """The first key."""
    end: str
    """The last key."""


class Backfill(SpecModel):
    """Makes a range of a job's partitions, in order, so many at a time."""

    job: str
    """The job to run."""
    partition_range: PartitionRange
    """Which partitions."""
    partitions: str | None = None
    """The partition definition, when the job's assets follow more than one."""
    batch_size: Annotated[int, Field(ge=1)] = 1
    """How many partitions one run takes."""
    description: str = ""
    """What the backfill is for."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags put on its runs."""
