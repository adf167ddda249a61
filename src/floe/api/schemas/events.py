"""Schemas of events, changes and the reports of legacy jobs."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal

from msgspec import Raw, Struct

from floe.api.errors import Fault
from floe.api.schemas import Count, Day, Name, Namespace, Prose, Words


class EventItem(Struct):
    """An event in a list."""

    event_id: int
    event_time: datetime
    event_type: str
    run_uuid: str | None
    process_key: str | None
    historical: bool
    received_at: datetime


class EventPage(Struct):
    """A page of events, newest first."""

    items: Sequence[EventItem]
    next: str | None


class EventDetail(EventItem):
    """An event with its original body, and the parts of its facets that were ignored."""

    body: Any = None
    notes: Sequence[Fault] = ()


class EventAnswer(EventItem):
    """Like EventDetail, for responses: the body is passed through without parsing."""

    body: Raw = Raw(b"null")
    notes: Sequence[Fault] = ()


class ChangeItem(Struct):
    """An entry of the ordered change log."""

    position: int
    kind: str
    dataset_id: int | None
    dataset_version_id: int | None
    process_id: int | None
    run_id: int | None
    business_date: date | None
    partition_key: str | None
    occurred_at: datetime
    detail_json: Any


class ChangePage(Struct):
    """Changes after a position, in order, and the position to continue from."""

    items: Sequence[ChangeItem]
    next: int


class BatchSummary(Struct):
    """Number of accepted and rejected events of a batch."""

    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class FailedEvent(Struct):
    """An event of a batch that was rejected, and why."""

    index: int
    reason: str
    retriable: bool


class BatchAnswer(Struct):
    """The result of a batch, as specified by OpenLineage."""

    status: Literal["success", "partial_success"]
    summary: BatchSummary
    failed_events: Sequence[FailedEvent]


class DatasetUse(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A dataset that a process reads or writes, with more details than its name."""

    name: Name
    namespace: Namespace | None = None
    version: Name | None = None
    rows: Count | None = None
    size: Count | None = None
    path: Prose | None = None
    checksum: Prose | None = None


class DatasetReport(Struct, forbid_unknown_fields=True):
    """Report that a version of a dataset is READY or FAILED."""

    dataset_name: Name
    version: Name | None = None
    status: Words = "READY"
    namespace: Namespace | None = None
    business_date: Day | None = None
    rows: Count | None = None
    size: Count | None = None
    path: Prose | None = None
    checksum: Prose | None = None
    inputs: list[Name | DatasetUse] | None = None
    error: Prose | None = None
    job: Name | None = None
    run_id: Words | None = None
    historical: bool = False
    occurred_at: datetime | None = None


class ProcessReport(Struct, forbid_unknown_fields=True):
    """Report the state of a run: STARTED, RUNNING, SUCCESS, FAILED or CANCELLED."""

    process_name: Name
    status: Words
    namespace: Namespace | None = None
    run_id: Words | None = None
    business_date: Day | None = None
    inputs: list[Name | DatasetUse] | None = None
    outputs: list[Name | DatasetUse] | None = None
    error: Prose | None = None
    technology: Words | None = None
    historical: bool = False
    occurred_at: datetime | None = None


class Reported(Struct):
    """The report is committed, with this run id."""

    run_id: str
