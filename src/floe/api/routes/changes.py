"""The ordered log of changes, read from a cursor; waits for the next one if there is none yet."""

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.answers import reply
from floe.api.deps import LARGEST_NUMBER, Limit
from floe.api.documents import gives
from floe.api.schemas.events import ChangeItem, ChangePage
from floe.api.schemas.fields import shaped
from floe.api.services import Services, services_of
from floe.catalog import list_changes as read_changes

LONGEST_WAIT = 60

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.get(
    "/changes",
    operation_id="list_changes",
    summary="What changed after a position",
    **gives(ChangePage),
)
async def list_changes(
    request: Request,
    after: Annotated[
        int, Query(ge=0, le=LARGEST_NUMBER, description="`next` of the answer before; 0 for all.")
    ] = 0,
    wait: Annotated[
        float, Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait for a change.")
    ] = 0,
    limit: Limit = 100,
) -> Response:
    """In the order of the commits, without a gap. The answer is empty when nothing came in time."""
    services = services_of(request)
    page = await run_in_threadpool(_read, services, after, limit)
    if not page.items and wait and await services.watch.wait(after, wait):
        page = await run_in_threadpool(_read, services, after, limit)
    return reply(page)


def _read(services: Services, after: int, limit: int) -> ChangePage:
    with services.sessions.reading() as session:
        items = [shaped(row, ChangeItem) for row in read_changes(session, after, limit)]
    return ChangePage(items, items[-1].position if items else after)
