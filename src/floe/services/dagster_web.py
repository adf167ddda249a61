"""Dagster's web interface behind a login: `python -m floe.services.dagster_web PORT`.

Dagster's own server has no login and accepts mutations by GET from any page. The guard runs in the
same process, so no port answers without it. It admits callers with a session or a token and a
known Host, and lets only those with the right role change anything.
"""

import hmac
import json
import sys
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
from floe.api.responses import answer_error, problem_response
from floe.api.server import listen, serve
from floe.catalog import open_ready_catalog
from floe.catalog.database import Sessions
from floe.catalog.principals import PLATFORM_ADMIN, Identity
from floe.errors import FloeError
from floe.execution.workspace import catalog_address, load_site
from floe.orchestration.home import home_of, read_web_secret, workspace_file
from floe.orchestration.webserver import MAY_CHANGE, is_mutation, open_web_app
from floe.services.service import HOST
from floe.settings import find_project

GRAPHQL = "/graphql"
SEE, CHANGE = READ, DECIDE
OWNER = Identity("floe", frozenset({PLATFORM_ADMIN}))
"""Whoever can read this server's secret owns the project's folder."""
MOST_BYTES = 10_000_000
RECHECK_SECONDS = 15.0
POLICY_VIOLATION = 1008
HEADERS = [
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]


class Guard:
    """Wraps Dagster's app and checks each HTTP request and WebSocket."""

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
        """Tell whether the session is still valid; yes if the catalog is unavailable."""
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
    """Refuse what the caller may not do; return a `receive` that replays the body."""
    path, safe = request.scope["path"], request.method in SAFE_METHODS
    if path != GRAPHQL:
        if not safe:
            _require(identity, CHANGE, "change anything in Dagster")
        return None, receive
    if safe:
        # Dagster would run any query, even a mutation, for any page that embeds it as an image.
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
        "Send GraphQL queries by POST, as application/json.",
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
    """Tell whether the body holds a mutation; reads it as Dagster does."""
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


def main(port: int) -> None:
    """Serve the project in FLOE_PROJECT until stopped."""
    site = load_site(find_project())
    listener = listen(HOST, port, login=True)
    hosts = Hosts.of(site.platform.orchestrator.url)
    catalog = open_ready_catalog(catalog_address(site))
    sessions = Sessions(catalog)
    try:
        with listener, open_web_app(workspace_file(site)) as app:
            gate = TokenGate(sessions, hosts=hosts)
            serve(
                Guard(app, gate, hosts, read_web_secret(home_of(site))), listener, websockets=True
            )
    finally:
        sessions.close()
        catalog.close()


if __name__ == "__main__":
    main(int(sys.argv[1]))
