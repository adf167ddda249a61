"""Routes of raw events: list and get."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import (
    DEFAULT_LIMIT,
    Cursor,
    Limit,
    RowId,
    Timestamp,
    cut_page,
    read_id,
    services_of,
)
from floe.api.errors import Fault
from floe.api.openapi import route_docs
from floe.api.responses import reply, reply_single
from floe.api.schemas import to_schema
from floe.api.schemas.events import EventAnswer, EventDetail, EventItem, EventPage
from floe.catalog.run_events import EventFilter, page_events
from floe.catalog.run_events import get_event as get_by_id
from floe.events.openlineage import decompress
from floe.events.openlineage_facets import list_notes

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.get(
    "/events", operation_id="list_events", summary="List events", **route_docs(EventPage, 400)
)
def list_events(
    request: Request,
    *,
    run_uuid: UUID | None = None,
    process_key: Annotated[str | None, Query(min_length=1, max_length=600)] = None,
    since: Timestamp = None,
    until: Timestamp = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """Newest first; filter by run, process and event time."""
    wanted = EventFilter(None if run_uuid is None else str(run_uuid), process_key, since, until)
    with services_of(request).sessions.reading() as session:
        rows = page_events(session, wanted, before_id=read_id(cursor), limit=limit + 1)
    page, after = cut_page(rows, limit, lambda row: row.event_id)
    return reply(EventPage([to_schema(row, EventItem) for row in page], after))


@router.get(
    "/event/{event_id}",
    operation_id="get_event",
    summary="Get an event with its body",
    **route_docs(EventDetail, 404),
)
def get_event(request: Request, event_id: RowId) -> Response:
    """The body is the event as sent.

    `notes` lists the parts of its facets that violate their schema and were ignored.
    """
    with services_of(request).sessions.reading() as session:
        row = get_by_id(session, event_id)
    detail = to_schema(row, EventAnswer)
    body = decompress(row.payload_json, row.payload_codec)
    detail.body = Raw(body)
    detail.notes = [Fault(note.path, note.message) for note in list_notes(body)]
    return reply_single(request, detail)
