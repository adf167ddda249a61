"""Routes of sessions: log in, log out, list and revoke."""

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import RowId, caller_of, services_of
from floe.api.login import Credentials, OpenedSession, login_page
from floe.api.login import close_session as close
from floe.api.login import open_session as open_new
from floe.api.openapi import route_docs
from floe.api.responses import reply
from floe.api.schemas import to_schema
from floe.api.schemas.governance import SessionItem, SessionPage
from floe.catalog import logins

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["governance"])
outside = APIRouter(route_class=GuardedRoute, tags=["governance"])


@outside.get("/login", operation_id="get_login", include_in_schema=False)
async def get_login() -> Response:
    """Return the page that a login link opens."""
    return login_page()


@router.post(
    "/session",
    operation_id="open_session",
    summary="Log in",
    **route_docs(OpenedSession, 400, 401, 403, 409, 413, 415, 429, takes=Credentials, status=201),
)
async def open_session(request: Request) -> Response:
    """Exchange a one-time login link or a token for a session; the cookie is HttpOnly."""
    services = services_of(request)
    return await open_new(request, services.gate, services.hosts)


@router.delete(
    "/session", operation_id="close_session", summary="Log out", **route_docs(None, 409, status=204)
)
async def close_session(request: Request) -> Response:
    """End the session of this browser."""
    return await close(request, services_of(request).gate)


@router.get(
    "/sessions", operation_id="list_sessions", summary="List sessions", **route_docs(SessionPage)
)
def list_sessions(request: Request) -> Response:
    """Sessions and unused login links, newest first; ended ones for 30 days."""
    with services_of(request).sessions.reading() as session:
        rows = logins.list_sessions(session)
    return reply(SessionPage([to_schema(row, SessionItem) for row in rows]))


@router.delete(
    "/session/{session_id}",
    operation_id="revoke_session",
    summary="Revoke a session",
    **route_docs(None, 404, status=204),
)
def revoke_session(request: Request, session_id: RowId) -> Response:
    """Revoke a session or an unused login link; takes effect within seconds."""
    with services_of(request).sessions.writing() as session:
        logins.revoke_session(session, session_id, actor=caller_of(request).name)
    return Response(status_code=204)
