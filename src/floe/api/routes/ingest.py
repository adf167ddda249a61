"""The event door over HTTP: single events, and batches of them.

201 means committed. Bodies are read as bytes and never become anything but claims, because this
is the path that every run of every job takes.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice

import msgspec
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.bodies import JSON, MIB, NDJSON, Body, check_type
from floe.api.documents import takes_events
from floe.api.errors import BadBodyError, Fault, TooLargeError, UnfitValueError
from floe.api.problems import status_of
from floe.api.schemas.events import BatchAnswer, BatchSummary, FailedEvent
from floe.api.services import Services, services_of
from floe.catalog.recording import EventClaim, EventFailedError
from floe.errors import FloeError
from floe.events.errors import BadEventError
from floe.events.ingest import read_claim

MOST_EVENT_BYTES = 16 * MIB
MOST_BATCH_BYTES = 64 * MIB
MOST_EVENTS = 10_000
# So many events of a batch share a transaction, and are read while those before are written.
EVENTS_AT_ONCE = 125
# A body beyond this is read in a thread, so that others need not wait for it.
LARGE_BYTES = 256 * 1024
# A line from its first letter on, however many empty ones stand before it.
LINE, NOTHING = re.compile(rb"[^\s][^\n]*"), msgspec.Raw()
COMMITTED, REFUSED, RETRIABLE = "committed", "refused", "retriable"

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.post(
    "/lineage", operation_id="send_event", summary="Send an OpenLineage event", **takes_events(201)
)
@router.post(
    "/run_event", operation_id="send_run_event", summary="Send a run event", **takes_events(201)
)
async def send_event(request: Request) -> Response:
    """Take one event: of a run, of a job or of a dataset.

    201 means that it is committed, with all that follows from it. The same event again changes
    nothing. `historical=true` fills history and triggers nothing, and so does an event
    that is older than events are kept.
    """
    services, historical = services_of(request), _historical(request)
    check_type(request, JSON)
    async with Body(request, services.budget, MOST_EVENT_BYTES, "An event") as body:
        await take_event(services, body, historical=historical)
    return Response(status_code=201)


@router.post(
    "/lineage/batch",
    operation_id="send_batch",
    summary="Send many events",
    **takes_events(200, batch=True),
)
async def send_batch(request: Request) -> Response:
    """Take a JSON array of events, or one event a line (application/x-ndjson).

    Events that are taken are committed when the answer comes. Each one that is not is listed with
    its place and the reason, and whether sending it again can help.
    """
    services, historical = services_of(request), _historical(request)
    kind = check_type(request, JSON, NDJSON)
    async with Body(request, services.budget, MOST_BATCH_BYTES, "A batch") as body:
        return await _take_batch(services, body, kind, historical=historical)


async def take_event(services: Services, body: bytes, *, historical: bool = False) -> None:
    """Read an event, hand it in, and wait for its commit."""
    read = partial(
        read_claim, body, historical=historical, retention=services.retention, foreign=True
    )
    try:
        claim = read() if len(body) < LARGE_BYTES else await run_in_threadpool(read)
        wrong = await services.door.write([claim])
    except FloeError as error:
        services.metrics.count_events(_outcome(error))
        raise
    if wrong:
        services.metrics.count_events(_outcome(wrong[0]))
        raise wrong[0]
    services.metrics.count_events(COMMITTED)


async def _take_batch(services: Services, body: bytes, kind: str, *, historical: bool) -> Response:
    events = await run_in_threadpool(_split, body, kind)
    received = len(events)
    wrong = await _take_events(services, events, historical=historical)
    outcomes = {index: _outcome(error) for index, error in wrong.items()}
    retriable = sum(outcome == RETRIABLE for outcome in outcomes.values())
    if retriable and retriable == received:
        raise next(iter(wrong.values()))
    services.metrics.count_events(COMMITTED, received - len(wrong))
    services.metrics.count_events(REFUSED, len(wrong) - retriable)
    services.metrics.count_events(RETRIABLE, retriable)
    return reply(
        BatchAnswer(
            "partial_success" if wrong else "success",
            BatchSummary(
                received, received - len(wrong), len(wrong), retriable, len(wrong) - retriable
            ),
            [
                FailedEvent(index, str(error), outcomes[index] == RETRIABLE)
                for index, error in sorted(wrong.items())
            ],
        )
    )


# A claim with its place in the batch.
_Placed = tuple[int, EventClaim]


async def _take_events(
    services: Services, events: Sequence[bytes], *, historical: bool
) -> dict[int, FloeError]:
    """Read some events while the ones before them are written; return what is wrong, by place."""
    read = partial(read_claim, historical=historical, retention=services.retention, foreign=True)
    wrong: dict[int, FloeError] = {}
    async with asyncio.TaskGroup() as writing:
        before: asyncio.Task[None] | None = None
        for start in range(0, len(events), EVENTS_AT_ONCE):
            some = range(start, min(start + EVENTS_AT_ONCE, len(events)))
            claims, unread = await run_in_threadpool(_read_some, events, some, read)
            wrong.update(unread)
            if before is not None:
                await before
            before = writing.create_task(_hand_in(services, claims, wrong))
    return wrong


async def _hand_in(
    services: Services, claims: Sequence[_Placed], wrong: dict[int, FloeError]
) -> None:
    if not claims:
        return
    try:
        refused = await services.door.write([claim for _, claim in claims])
    except FloeError as error:
        refused = dict.fromkeys(range(len(claims)), error)
    wrong.update({claims[place][0]: error for place, error in refused.items()})


def _split(body: bytes, kind: str) -> list[bytes]:
    events = _split_array(body) if kind == JSON else _split_lines(body)
    if len(events) > MOST_EVENTS:
        raise TooLargeError("A batch", MOST_EVENTS, "events")
    return events


def _read_some(
    events: Sequence[bytes], some: range, read: Callable[[bytes], EventClaim]
) -> tuple[list[_Placed], dict[int, FloeError]]:
    claims: list[_Placed] = []
    wrong: dict[int, FloeError] = {}
    for index in some:
        try:
            claims.append((index, read(events[index])))
        except (BadEventError, EventFailedError) as error:
            wrong[index] = error
    return claims, wrong


def _split_array(body: bytes) -> list[bytes]:
    """Return each event's own bytes, because they are what is kept and hashed."""
    try:
        parts = msgspec.structs.astuple(_list_decoder(MOST_EVENTS + 1).decode(body))
    except msgspec.ValidationError as error:
        raise UnfitValueError([Fault("$", "must be a list of events")]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadBodyError(f"The body is not JSON: {str(error).rstrip('.')}.") from error
    except RecursionError as error:
        raise UnfitValueError([Fault("$", "is nested too deeply")]) from error
    return [event for event in map(bytes, parts) if event]


@cache
def _list_decoder(most: int) -> "msgspec.json.Decoder[msgspec.Struct]":
    """Reads a list up to so many elements, and passes over the rest.

    As a list it would take memory for each of its elements, of which a few kilobytes of gzip can
    hold millions.
    """
    fields = [(f"event_{place}", msgspec.Raw, NOTHING) for place in range(most)]
    return msgspec.json.Decoder(msgspec.defstruct("Events", fields, array_like=True, gc=False))


def _split_lines(body: bytes) -> list[bytes]:
    return [found[0].rstrip() for found in islice(LINE.finditer(body), MOST_EVENTS + 1)]


def _outcome(error: FloeError) -> str:
    return RETRIABLE if status_of(error) == 503 else REFUSED


def _historical(request: Request) -> bool:
    given = request.query_params.get("historical", "false").lower()
    if given not in ("true", "false"):
        raise UnfitValueError([Fault("query.historical", "must be true or false")])
    return given == "true"
