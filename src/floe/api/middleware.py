"""Middleware: host check, headers, counters, compression, fast path for events.

Nearly all requests are single events from a job host whose token was checked recently. The router,
parameters and response object would cost more than the event itself, so these requests skip them.
Any other request goes through the app, which returns detailed errors.
"""

import time
from typing import NamedTuple

from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floe.api.access import check_permission
from floe.api.bodies import JSON
from floe.api.deps import Services
from floe.api.errors import Fault, ForbiddenError, InvalidValueError, UnknownHostError
from floe.api.responses import CLIENT_DISCONNECTED, answer_error
from floe.api.routes.ingest import LARGE_BYTES, take_event
from floe.errors import FloeError

HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"private, no-cache"),
]
NUL = b"%00"
GZIP_LEVEL = 4
GZIP_BYTES = 1_000


def compress_responses(app: ASGIApp) -> ASGIApp:
    """Compress long responses for clients that accept gzip."""
    return GZipMiddleware(app, minimum_size=GZIP_BYTES, compresslevel=GZIP_LEVEL)


class ResponseMiddleware:
    """Adds headers to responses, counts requests, and rejects U+0000."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A page that needs scripts sets its own headers.
                given = {name for name, _ in message["headers"]}
                added = [header for header in HEADERS if header[0] not in given]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        # No database stores U+0000 in text, so no requested value can contain it.
        has_nul = NUL in scope["query_string"] or "\x00" in scope["path"]
        try:
            answer = _reject_nul if has_nul else self._app
            await answer(scope, receive, send_with_headers)
        finally:
            seconds = time.perf_counter() - started
            scope["app"].state.services.metrics.count_request(_operation(scope), status, seconds)


async def _reject_nul(scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_error(InvalidValueError([Fault("url", "contains U+0000")]))
    await response(scope, receive, send)


def _operation(scope: Scope) -> str:
    route = scope.get("route")
    return getattr(route, "operation_id", None) or "unknown"


OPERATIONS = {"/api/v1/lineage": "send_event", "/api/v1/run_event": "send_run_event"}
UNUSUAL = frozenset({b"content-encoding", b"transfer-encoding"})
CREATED = {
    "type": "http.response.start",
    "status": 201,
    "headers": [(b"content-length", b"0"), *HEADERS],
}
NO_BODY = {"type": "http.response.body", "body": b""}


class FastRequest(NamedTuple):
    """An event request that can be handled without the router."""

    operation: str
    length: int


class EventFastPath:
    """Checks the Host header, and handles simple event requests without the router."""

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
            await _reject(error, scope, receive, send)
            return
        operation = OPERATIONS.get(scope["path"])
        if operation is None:
            await self._app(scope, receive, send)
            return
        request = match_fast_path(scope, operation, services)
        if request is None:
            await self._app(scope, receive, send)
        else:
            await _answer(request, services, scope, receive, send)


def match_fast_path(scope: Scope, operation: str, services: Services) -> FastRequest | None:
    """Return the request if it is simple enough to be handled without the router."""
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
            return FastRequest(operation, int(length))
    except ForbiddenError:
        pass
    return None


async def _reject(error: FloeError, scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_error(error)
    response.raw_headers.extend(HEADERS)
    await response(scope, receive, send)


async def _answer(
    request: FastRequest, services: Services, scope: Scope, receive: Receive, send: Send
) -> None:
    started, status = time.perf_counter(), 500
    try:
        await _receive_event(request, services, receive)
        status = 201
        await send(CREATED)
        await send(NO_BODY)
    except FloeError as error:
        response = answer_error(error)
        status = response.status_code
        response.raw_headers.extend(HEADERS)
        await compress_responses(response)(scope, receive, send)
    except ClientDisconnect:
        status = CLIENT_DISCONNECTED
    finally:
        seconds = time.perf_counter() - started
        services.metrics.count_request(request.operation, status, seconds)


async def _receive_event(request: FastRequest, services: Services, receive: Receive) -> None:
    services.budget.reserve(request.length)
    try:
        await take_event(services, await _receive(receive))
    finally:
        services.budget.release(request.length)


async def _receive(receive: Receive) -> bytes:
    # The server enforces Content-Length, so the body is never longer.
    chunks, more = [], True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunks.append(message.get("body", b""))
        more = message.get("more_body", False)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)
