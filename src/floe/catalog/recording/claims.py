"""What one event claims, in the catalog's own words and free of the wire's.

Claims of several events about one thing are merged by rules that do not ask which came first:
the earliest start, the latest sighting, the newest facet. So any order gives one result.
"""

from collections.abc import Mapping
from datetime import date, datetime

from msgspec import Struct


class Seen:
    """Which kinds of event a run has had. A run's status follows from all of them together.

    Plain numbers: each look at a flag of Python's own makes another flag, and there are many looks.
    """

    STARTED = 1
    ABORTED = 2
    FAILED = 4
    COMPLETED = 8


class RunClaim(Struct, array_like=True, gc=False):
    """What an event says of its run."""

    run_uuid: str
    seen: int
    at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    business_date: date | None
    parent_run_uuid: str | None
    facets: str | None


class StepClaim(Struct, array_like=True, gc=False):
    """What an event says of a step of its run."""

    name: str
    order: int
    seen: int
    started_at: datetime | None
    ended_at: datetime | None


class VersionClaim(Struct, array_like=True, gc=False):
    """What an event says of a version that a run wrote or read."""

    tag: str | None
    business_date: date | None
    rows: int | None = None
    size: int | None = None
    path: str | None = None
    metadata: str | None = None
    # The parts of the dataset that were written, as paths below it.
    locations: tuple[str, ...] = ()


class AssertionClaim(Struct, array_like=True, gc=False):
    """A check that others ran on a dataset, and what it found."""

    name: str
    kind: str
    passed: bool
    warns: bool


class DatasetClaim(Struct, array_like=True, gc=False):
    """What an event says of a dataset."""

    namespace: str
    name: str
    writes: bool
    reads: bool
    version: VersionClaim
    # Raw bytes: most schemas and column lineages are known by them and need not be read.
    schema: bytes | None = None
    columns: bytes | None = None
    symlinks: tuple[tuple[str, str], ...] = ()
    facets: Mapping[str, str] = {}
    assertions: tuple[AssertionClaim, ...] = ()


class EventClaim(Struct, array_like=True, gc=False):
    """An event, and all that it claims."""

    day: date
    hash: str
    at: datetime
    type: str
    payload: bytes
    codec: str
    historical: bool
    received_at: datetime
    # The business date, as said outright and as the schedule says it.
    business_date: date | None = None
    nominal_at: datetime | None = None
    process_key: str | None = None
    run: RunClaim | None = None
    datasets: list[DatasetClaim] = []
    process_facets: Mapping[str, str] = {}
    # A step of the run, when the event is about that alone.
    step: StepClaim | None = None
