"""Raw events: listed, and one as it came."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from msgspec import Raw
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply, reply_single
from floe.api.cursors import cut_page, read_number
from floe.api.deps import DEFAULT_LIMIT, Cursor, Limit, Moment, Number
from floe.api.documents import gives
from floe.api.errors import Fault
from floe.api.schemas.events import EventAnswer, EventDetail, EventItem, EventPage
from floe.api.schemas.fields import shaped
from floe.api.services import services_of
from floe.catalog.run_events import EventFilter, page_events
from floe.catalog.run_events import get_event as get_by_number
from floe.events.facets import list_notes
from floe.events.payload import decompress

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.get("/events", operation_id="list_events", summary="Events", **gives(EventPage, 400))
def list_events(
    request: Request,
    *,
    run_uuid: UUID | None = None,
    process_key: Annotated[str | None, Query(min_length=1, max_length=600)] = None,
    since: Moment = None,
    until: Moment = None,
    limit: Limit = DEFAULT_LIMIT,
    cursor: Cursor = None,
) -> Response:
    """The newest first; by run, by process, and by the time that their sender gives."""
    wanted = EventFilter(None if run_uuid is None else str(run_uuid), process_key, since, until)
    with services_of(request).sessions.reading() as session:
        rows = page_events(session, wanted, before_id=read_number(cursor), limit=limit + 1)
    page, after = cut_page(rows, limit, lambda row: row.event_id)
    return reply(EventPage([shaped(row, EventItem) for row in page], after))


@router.get(
    "/event/{event_id}",
    operation_id="get_event",
    summary="One event with its body",
    **gives(EventDetail, 404),
)
def get_event(request: Request, event_id: Number) -> Response:
    """The body is the event as its sender wrote it.

    `notes` lists the parts of its facets that do not fit their schema, and so were left out.
    """
    with services_of(request).sessions.reading() as session:
        row = get_by_number(session, event_id)
    detail = shaped(row, EventAnswer)
    body = decompress(row.payload_json, row.payload_codec)
    detail.body = Raw(body)
    detail.notes = [Fault(note.path, note.message) for note in list_notes(body)]
    return reply_single(request, detail)
