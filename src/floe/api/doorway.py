"""The short way to the event door, for the request that nearly all of them are.

A job host sends one event, plainly, with a token that was believed a moment ago. Such a request
needs no router, no parameters and no response object, and these would cost more than the event.
Whatever is unusual about a request, it goes through the app, which knows how to say so.
"""

import time
from typing import NamedTuple

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from floe.api.access import check_permission
from floe.api.bodies import JSON
from floe.api.envelope import HEADERS, packing
from floe.api.errors import ForbiddenError, UnknownHostError
from floe.api.problems import HUNG_UP, answer_error
from floe.api.routes.ingest import LARGE_BYTES, take_event
from floe.api.services import Services
from floe.errors import FloeError

OPERATIONS = {"/api/v1/lineage": "send_event", "/api/v1/run_event": "send_run_event"}
UNUSUAL = frozenset({b"content-encoding", b"transfer-encoding"})
CREATED = {
    "type": "http.response.start",
    "status": 201,
    "headers": [(b"content-length", b"0"), *HEADERS],
}
NO_BODY = {"type": "http.response.body", "body": b""}


class Plain(NamedTuple):
    """A request that may take the short way."""

    operation: str
    length: int


class Doorway:
    """Wraps the whole app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        services: Services = scope["app"].state.services
        try:
            services.hosts.check_host(scope)
        except UnknownHostError as error:
            await _refuse(error, scope, receive, send)
            return
        operation = OPERATIONS.get(scope["path"])
        if operation is None:
            await self._app(scope, receive, send)
            return
        plain = find_plain(scope, operation, services)
        if plain is None:
            await self._app(scope, receive, send)
        else:
            await _answer(plain, services, scope, receive, send)


def find_plain(scope: Scope, operation: str, services: Services) -> Plain | None:
    """Say whether a request may take the short way: nothing about it needs a second look."""
    headers = dict(scope["headers"])
    if (
        scope["method"] != "POST"
        or scope["query_string"]
        or len(headers) < len(scope["headers"])
        or headers.get(b"content-type") != JSON.encode()
        or not UNUSUAL.isdisjoint(headers)
    ):
        return None
    length = headers.get(b"content-length", b"")
    if not length.isdigit() or int(length) >= LARGE_BYTES:
        return None
    identity = services.gate.recognise(headers.get(b"authorization", b"").decode("latin-1"))
    try:
        if identity is not None:
            check_permission(identity, operation)
            return Plain(operation, int(length))
    except ForbiddenError:
        pass
    return None


async def _refuse(error: FloeError, scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_error(error)
    response.raw_headers.extend(HEADERS)
    await response(scope, receive, send)


async def _answer(
    plain: Plain, services: Services, scope: Scope, receive: Receive, send: Send
) -> None:
    started, status = time.perf_counter(), 500
    try:
        await _take(plain, services, receive)
        status = 201
        await send(CREATED)
        await send(NO_BODY)
    except FloeError as error:
        response = answer_error(error)
        status = response.status_code
        response.raw_headers.extend(HEADERS)
        await packing(response)(scope, receive, send)
    except ClientDisconnect:
        status = HUNG_UP
    finally:
        seconds = time.perf_counter() - started
        services.metrics.count_request(plain.operation, status, seconds)


async def _take(plain: Plain, services: Services, receive: Receive) -> None:
    services.budget.take(plain.length)
    try:
        await take_event(services, await _receive(receive))
    finally:
        services.budget.give_back(plain.length)


async def _receive(receive: Receive) -> bytes:
    # The server counts the bytes: a body is never longer than the request said.
    chunks, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
