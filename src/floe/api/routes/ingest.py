"""Routes that receive events: single events, batches, and reports of legacy jobs.

201 means committed. Bodies are read as bytes and converted directly to claims, because every run
of every job takes this path.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

import msgspec
from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.bodies import JSON, MIB, NDJSON, Body, check_type, read_json
from floe.api.deps import Services, services_of
from floe.api.errors import BadBodyError, Fault, InvalidValueError, TooLargeError
from floe.api.openapi import event_route_docs, route_docs
from floe.api.responses import reply, status_of
from floe.api.schemas.events import (
    BatchAnswer,
    BatchSummary,
    DatasetReport,
    FailedEvent,
    ProcessReport,
    Reported,
)
from floe.catalog.recording import EventClaim, EventFailedError
from floe.client.messages import dataset_message, process_message, run_id_of
from floe.errors import FloeError
from floe.events.errors import BadEventError
from floe.events.ingest import read_claim

MOST_EVENT_BYTES = 16 * MIB
MOST_BATCH_BYTES = 64 * MIB
MOST_EVENTS = 10_000
# Events of a batch per transaction; the next ones are read while these are written.
EVENTS_AT_ONCE = 125
# Larger bodies are read in a thread, so that they do not block other requests.
LARGE_BYTES = 256 * 1024
# A non-empty line, without leading whitespace or empty lines.
LINE, NOTHING = re.compile(rb"[^\s][^\n]*"), msgspec.Raw()
COMMITTED, REJECTED, RETRIABLE = "committed", "refused", "retriable"

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.post(
    "/lineage",
    operation_id="send_event",
    summary="Send an OpenLineage event",
    **event_route_docs(201),
)
@router.post(
    "/run_event", operation_id="send_run_event", summary="Send a run event", **event_route_docs(201)
)
async def send_event(request: Request) -> Response:
    """Receive a run, job or dataset event.

    201 means that the event and its effects are committed. Sending the same event again changes
    nothing. With `historical=true`, the event only adds to the history and triggers nothing; so
    does an event older than the retention of events.
    """
    services, historical = services_of(request), _historical(request)
    check_type(request, JSON)
    async with Body(request, services.budget, MOST_EVENT_BYTES, "An event") as body:
        await take_event(services, body, historical=historical)
    return Response(status_code=201)


@router.post(
    "/lineage/batch",
    operation_id="send_batch",
    summary="Send a batch of events",
    **event_route_docs(200, batch=True),
)
async def send_batch(request: Request) -> Response:
    """Receive a JSON array of events, or one event per line (application/x-ndjson).

    Accepted events are committed before the response. Each rejected event is listed with its
    index, the reason, and whether to retry it.
    """
    services, historical = services_of(request), _historical(request)
    kind = check_type(request, JSON, NDJSON)
    async with Body(request, services.budget, MOST_BATCH_BYTES, "A batch") as body:
        return await _take_batch(services, body, kind, historical=historical)


async def take_event(services: Services, body: bytes, *, historical: bool = False) -> None:
    """Read an event, pass it to the event door, and wait for its commit."""
    read = partial(
        read_claim, body, historical=historical, retention=services.retention, foreign=True
    )
    try:
        claim = read() if len(body) < LARGE_BYTES else await run_in_threadpool(read)
        errors = await services.door.write([claim])
    except FloeError as error:
        services.metrics.count_events(_outcome(error))
        raise
    if errors:
        services.metrics.count_events(_outcome(errors[0]))
        raise errors[0]
    services.metrics.count_events(COMMITTED)


async def _take_batch(services: Services, body: bytes, kind: str, *, historical: bool) -> Response:
    events = await run_in_threadpool(_split, body, kind)
    received = len(events)
    errors = await _take_events(services, events, historical=historical)
    outcomes = {index: _outcome(error) for index, error in errors.items()}
    retriable = sum(outcome == RETRIABLE for outcome in outcomes.values())
    if retriable and retriable == received:
        raise next(iter(errors.values()))
    services.metrics.count_events(COMMITTED, received - len(errors))
    services.metrics.count_events(REJECTED, len(errors) - retriable)
    services.metrics.count_events(RETRIABLE, retriable)
    return reply(
        BatchAnswer(
            "partial_success" if errors else "success",
            BatchSummary(
                received, received - len(errors), len(errors), retriable, len(errors) - retriable
            ),
            [
                FailedEvent(index, str(error), outcomes[index] == RETRIABLE)
                for index, error in sorted(errors.items())
            ],
        )
    )


# A claim with its index in the batch.
_IndexedClaim = tuple[int, EventClaim]


async def _take_events(
    services: Services, events: Sequence[bytes], *, historical: bool
) -> dict[int, FloeError]:
    """Read events while the previous ones are written; return the errors by index."""
    read = partial(read_claim, historical=historical, retention=services.retention, foreign=True)
    errors: dict[int, FloeError] = {}
    async with asyncio.TaskGroup() as writing:
        before: asyncio.Task[None] | None = None
        for start in range(0, len(events), EVENTS_AT_ONCE):
            indexes = range(start, min(start + EVENTS_AT_ONCE, len(events)))
            claims, unread = await run_in_threadpool(_read_events, events, indexes, read)
            errors.update(unread)
            if before is not None:
                await before
            before = writing.create_task(_write_claims(services, claims, errors))
    return errors


async def _write_claims(
    services: Services, claims: Sequence[_IndexedClaim], errors: dict[int, FloeError]
) -> None:
    if not claims:
        return
    try:
        rejected = await services.door.write([claim for _, claim in claims])
    except FloeError as error:
        rejected = dict.fromkeys(range(len(claims)), error)
    errors.update({claims[index][0]: error for index, error in rejected.items()})


def _split(body: bytes, kind: str) -> list[bytes]:
    events = _split_array(body) if kind == JSON else _split_lines(body)
    if len(events) > MOST_EVENTS:
        raise TooLargeError("A batch", MOST_EVENTS, "events")
    return events


def _read_events(
    events: Sequence[bytes], indexes: range, read: Callable[[bytes], EventClaim]
) -> tuple[list[_IndexedClaim], dict[int, FloeError]]:
    claims: list[_IndexedClaim] = []
    errors: dict[int, FloeError] = {}
    for index in indexes:
        try:
            claims.append((index, read(events[index])))
        except (BadEventError, EventFailedError) as error:
            errors[index] = error
    return claims, errors


def _split_array(body: bytes) -> list[bytes]:
    """Return the bytes of each event, because these are stored and hashed."""
    try:
        parts = msgspec.structs.astuple(_list_decoder(MOST_EVENTS + 1).decode(body))
    except msgspec.ValidationError as error:
        raise InvalidValueError([Fault("$", "must be a list of events")]) from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadBodyError(f"The body is not JSON: {str(error).rstrip('.')}.") from error
    except RecursionError as error:
        raise InvalidValueError([Fault("$", "is nested too deeply")]) from error
    return [event for event in map(bytes, parts) if event]


@cache
def _list_decoder(most: int) -> "msgspec.json.Decoder[msgspec.Struct]":
    """Return a decoder that reads the first elements of a list and skips the rest.

    A list decoder would need memory for each element, and a few kilobytes of gzip can contain
    millions.
    """
    fields = [(f"event_{index}", msgspec.Raw, NOTHING) for index in range(most)]
    return msgspec.json.Decoder(msgspec.defstruct("Events", fields, array_like=True, gc=False))


def _split_lines(body: bytes) -> list[bytes]:
    return [line[0].rstrip() for line in islice(LINE.finditer(body), MOST_EVENTS + 1)]


def _outcome(error: FloeError) -> str:
    return RETRIABLE if status_of(error) == 503 else REJECTED


def _historical(request: Request) -> bool:
    given = request.query_params.get("historical", "false").lower()
    if given not in ("true", "false"):
        raise InvalidValueError([Fault("query.historical", "must be true or false")])
    return given == "true"


legacy_router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@legacy_router.post(
    "/register_dataset",
    operation_id="register_dataset",
    summary="Report that a version of a dataset is ready or failed",
    **route_docs(Reported, 400, 413, 415, takes=DatasetReport, status=201),
)
async def register_dataset(request: Request) -> Response:
    """For legacy jobs. 201 means committed; repeating the report changes nothing."""
    report = await read_json(request, DatasetReport)
    services = services_of(request)
    message = dataset_message(**_given(report), lake=services.lake)
    await take_event(services, msgspec.json.encode(message))
    return reply(Reported(run_id_of(message)), 201)


@legacy_router.post(
    "/register_process",
    operation_id="register_process",
    summary="Report that a process started or ended",
    **route_docs(Reported, 400, 413, 415, takes=ProcessReport, status=201),
)
async def register_process(request: Request) -> Response:
    """For legacy jobs. Reports with one run id belong to one run. 201 means committed."""
    report = await read_json(request, ProcessReport)
    services = services_of(request)
    message = process_message(**_given(report), lake=services.lake)
    await take_event(services, msgspec.json.encode(message))
    return reply(Reported(run_id_of(message)), 201)


def _given(report: msgspec.Struct) -> dict[str, Any]:
    given: dict[str, Any] = msgspec.to_builtins(report)
    return {name: value for name, value in given.items() if value is not None}
