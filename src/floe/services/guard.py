"""The guard around Dagster's web interface, in the same process: there is no port without it.

Dagster's own server knows no login and takes mutations by GET from any page. The guard lets in who
has a session or a token, by a known Host, and lets change only who may.
"""

import hmac
import json
from http import HTTPStatus

import anyio
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from floe.api.access import DECIDE, READ, Rule, allows
from floe.api.bodies import JSON, check_type
from floe.api.errors import (
    BadBodyError,
    ForbiddenError,
    TooLargeError,
    UnauthorizedError,
)
from floe.api.gate import TokenGate
from floe.api.hosts import SAFE_METHODS, Hosts
from floe.api.login import LOGIN_PATH, SESSION_PATH, close_session, login_page, open_session
from floe.api.problems import answer_error, problem_response
from floe.catalog.principals import PLATFORM_ADMIN, Identity
from floe.errors import FloeError
from floe.orchestration.webserver import MAY_CHANGE, is_mutation

GRAPHQL = "/graphql"
SEE, CHANGE = READ, DECIDE
OWNER = Identity("floe", frozenset({PLATFORM_ADMIN}))
"""Who can read the secret of this server owns the project's folder."""
MOST_BYTES = 10_000_000
RECHECK_SECONDS = 15.0
POLICY_VIOLATION = 1008
HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Guard:
    """Wraps Dagster's app: HTTP and WebSockets."""

    def __init__(self, app: ASGIApp, gate: TokenGate, hosts: Hosts, secret: str) -> None:
        self._app, self._gate, self._hosts = app, gate, hosts
        self._authorization = f"Bearer {secret}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._guard_request(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._guard_socket(scope, receive, send)
        else:
            await self._app(scope, receive, send)

    async def _guard_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                added = [header for header in HEADERS if header[0] not in given]
                message["headers"] = [*message["headers"], *added]
            await send(message)

        request = Request(scope, receive)
        try:
            self._hosts.check_host(scope)
            response = await self._answer_login(request)
            if response is None:
                identity = await self._identify(request)
                response, receive = await _check_request(request, identity, receive)
                scope[MAY_CHANGE] = allows(CHANGE, identity)
        except UnauthorizedError as error:
            response = login_page(401) if _wants_page(request) else answer_error(error)
        except FloeError as error:
            response = answer_error(error)
        await (response or self._app)(scope, receive, send_with_headers)

    async def _guard_socket(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)
        try:
            self._hosts.check_host(scope)
            await self._identify(connection)
        except FloeError:
            # Closed before it is accepted: the server answers 403.
            await send({"type": "websocket.close", "code": POLICY_VIOLATION})
            return
        async with anyio.create_task_group() as tasks:

            async def close_when_over() -> None:
                while await self._is_welcome(connection):
                    await anyio.sleep(RECHECK_SECONDS)
                await send({"type": "websocket.close", "code": POLICY_VIOLATION})
                tasks.cancel_scope.cancel()

            tasks.start_soon(close_when_over)
            await self._app(scope, receive, send)
            tasks.cancel_scope.cancel()

    async def _is_welcome(self, connection: HTTPConnection) -> bool:
        """Tell whether a session still lasts. A catalog that is away does not end it."""
        try:
            await self._identify(connection)
        except (UnauthorizedError, ForbiddenError):
            return False
        except FloeError:
            return True
        return True

    async def _answer_login(self, request: Request) -> Response | None:
        method, path = request.method, request.scope["path"]
        if path == LOGIN_PATH and method in SAFE_METHODS:
            return login_page()
        if path == SESSION_PATH and method == "POST":
            return await open_session(request, self._gate, self._hosts)
        if path == SESSION_PATH and method == "DELETE":
            return await close_session(request, self._gate)
        return None

    async def _identify(self, connection: HTTPConnection) -> Identity:
        given = connection.headers.get("authorization", "").encode()
        if hmac.compare_digest(given, self._authorization):
            return OWNER
        identity = await self._gate.identify(connection)
        _require(identity, SEE, "see Dagster")
        return identity


async def _check_request(
    request: Request, identity: Identity, receive: Receive
) -> tuple[Response | None, Receive]:
    """Refuse what the caller may not do. A body that was read is given back to be read again."""
    path, safe = request.scope["path"], request.method in SAFE_METHODS
    if path != GRAPHQL:
        if not safe:
            _require(identity, CHANGE, "change anything in Dagster")
        return None, receive
    if safe:
        # Dagster would run it, a mutation as well, for any page that shows a picture.
        by_query = "query" in request.query_params
        return (_not_by_get() if by_query else None), receive
    check_type(request, JSON)
    if allows(CHANGE, identity):
        return None, receive
    body = await _read_body(request)
    if await run_in_threadpool(_holds_mutation, body):
        _require(identity, CHANGE, "change anything in Dagster")
    return None, _replayed(body, receive)


def _require(identity: Identity, rule: Rule, action: str) -> None:
    if not allows(rule, identity):
        raise ForbiddenError(identity.name, action, sorted(rule.everywhere))


def _not_by_get() -> Response:
    return problem_response(
        HTTPStatus.METHOD_NOT_ALLOWED,
        "GraphQL queries are taken by POST alone, as application/json.",
        headers={"Allow": "POST"},
    )


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BYTES:
            raise TooLargeError("A GraphQL query", MOST_BYTES)
    return bytes(body)


def _holds_mutation(body: bytes) -> bool:
    """Tell whether Dagster, which reads the body in the same way, would find a mutation."""
    try:
        query = json.loads(body)["query"]
        if not isinstance(query, str):
            raise BadBodyError("`query` must be a string.")
        return is_mutation(query)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BadBodyError("The body must be a JSON object with a GraphQL `query`.") from error


def _replayed(body: bytes, receive: Receive) -> Receive:
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return waiting.pop() if waiting else await receive()

    return receive_again


def _wants_page(request: Request) -> bool:
    return request.method == "GET" and "text/html" in request.headers.get("accept", "")
