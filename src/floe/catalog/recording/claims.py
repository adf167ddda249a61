"""What one event claims, in the catalog's terms, independent of its format.

Claims of several events about one thing are merged by rules that ignore arrival order: the
earliest start, the latest sighting, the newest facet. So any order gives the same result.
"""

from collections.abc import Mapping
from datetime import date, datetime

from msgspec import Struct


class Seen:
    """Bit flags of the event kinds a run has had. They determine its status together.

    Plain integers, because each operation on an enum.Flag creates an object and this is a hot path.
    """

    STARTED = 1
    ABORTED = 2
    FAILED = 4
    COMPLETED = 8


class RunClaim(Struct, array_like=True, gc=False):
    """What an event says about its run."""

    run_uuid: str
    seen: int
    at: datetime
    started_at: datetime | None
    ended_at: datetime | None
    business_date: date | None
    parent_run_uuid: str | None
    facets: str | None
    attempt: int = 1


class StepClaim(Struct, array_like=True, gc=False):
    """What an event says about a step of its run."""

    name: str
    order: int
    seen: int
    started_at: datetime | None
    ended_at: datetime | None


class VersionClaim(Struct, array_like=True, gc=False):
    """What an event says about a version that a run wrote or read."""

    tag: str | None
    business_date: date | None
    rows: int | None = None
    size: int | None = None
    path: str | None = None
    checksum: str | None = None
    metadata: str | None = None
    # The parts of the dataset that were written, as paths below it.
    locations: tuple[str, ...] = ()


class AssertionClaim(Struct, array_like=True, gc=False):
    """The result of a check that another tool ran on a dataset."""

    name: str
    kind: str
    passed: bool
    warns: bool


class DatasetClaim(Struct, array_like=True, gc=False):
    """What an event says about a dataset."""

    namespace: str
    name: str
    writes: bool
    reads: bool
    version: VersionClaim
    # Raw bytes: most schemas and column lineages are cached by their bytes and never decoded.
    schema: bytes | None = None
    columns: bytes | None = None
    symlinks: tuple[tuple[str, str], ...] = ()
    facets: Mapping[str, str] = {}
    assertions: tuple[AssertionClaim, ...] = ()


class EventClaim(Struct, array_like=True, gc=False):
    """An event and everything it claims."""

    day: date
    hash: str
    at: datetime
    type: str
    payload: bytes
    codec: str
    historical: bool
    received_at: datetime
    # The explicit business date, and the nominal time of the schedule.
    business_date: date | None = None
    nominal_at: datetime | None = None
    process_key: str | None = None
    run: RunClaim | None = None
    datasets: list[DatasetClaim] = []
    process_facets: Mapping[str, str] = {}
    # Set when the event is only about a step of the run.
    step: StepClaim | None = None
