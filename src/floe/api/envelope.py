"""What goes around every request: headers that browsers heed, counters, and a check for U+0000."""

import time

from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floe.api.errors import Fault, UnfitValueError
from floe.api.problems import answer_error

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


def packing(app: ASGIApp) -> ASGIApp:
    """Let long answers go out packed to those who can read them so."""
    return GZipMiddleware(app, minimum_size=GZIP_BYTES, compresslevel=GZIP_LEVEL)


class Envelope:
    """Wraps the whole app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def send_in_envelope(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                # A page that needs scripts brings a stricter answer of its own.
                given = {name for name, _ in message["headers"]}
                added = [header for header in HEADERS if header[0] not in given]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        # No store keeps it in text, so nothing that is asked for can have it.
        asked_for_nul = NUL in scope["query_string"] or "\x00" in scope["path"]
        try:
            answer = _refuse_nul if asked_for_nul else self._app
            await answer(scope, receive, send_in_envelope)
        finally:
            seconds = time.perf_counter() - started
            scope["app"].state.services.metrics.count_request(_operation(scope), status, seconds)


async def _refuse_nul(scope: Scope, receive: Receive, send: Send) -> None:
    response = answer_error(UnfitValueError([Fault("url", "holds U+0000")]))
    await response(scope, receive, send)


def _operation(scope: Scope) -> str:
    route = scope.get("route")
    return getattr(route, "operation_id", None) or "unknown"
