"""Events and changes, as the API shows them, and the answer to a batch."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any, Literal

from msgspec import Raw, Struct

from floe.api.errors import Fault


class EventItem(Struct):
    """An event, as a list shows it."""

    event_id: int
    event_time: datetime
    event_type: str
    run_uuid: str | None
    process_key: str | None
    historical: bool
    received_at: datetime


class EventPage(Struct):
    """A page of events, the newest first."""

    items: Sequence[EventItem]
    next: str | None


class EventDetail(EventItem):
    """An event with its body as it came, and the parts of its facets that were left out."""

    body: Any = None
    notes: Sequence[Fault] = ()


class EventAnswer(EventItem):
    """The same on its way out: the body goes through unread."""

    body: Raw = Raw(b"null")
    notes: Sequence[Fault] = ()


class ChangeItem(Struct):
    """A row of the ordered log of changes."""

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
    """Changes after a position, in order, and the position to go on from."""

    items: Sequence[ChangeItem]
    next: int


class BatchSummary(Struct):
    """How many events of a batch were taken."""

    received: int
    successful: int
    failed: int
    retriable: int
    non_retriable: int


class FailedEvent(Struct):
    """An event of a batch that was not taken, and why."""

    index: int
    reason: str
    retriable: bool


class BatchAnswer(Struct):
    """What became of a batch, as OpenLineage has it."""

    status: Literal["success", "partial_success"]
    summary: BatchSummary
    failed_events: Sequence[FailedEvent]
