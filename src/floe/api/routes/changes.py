"""The change log, read from a position; requests can wait for the next change."""

import asyncio
from contextlib import suppress
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from floe.api.access import GuardedRoute
from floe.api.deps import MAX_ROW_ID, Limit, Services, services_of
from floe.api.openapi import route_docs
from floe.api.responses import reply
from floe.api.schemas import to_schema
from floe.api.schemas.events import ChangeItem, ChangePage
from floe.catalog import last_position
from floe.catalog import list_changes as read_changes
from floe.catalog.database import Sessions

LONGEST_WAIT = 60

router = APIRouter(prefix="/api/v1", route_class=GuardedRoute, tags=["events"])


@router.get(
    "/changes",
    operation_id="list_changes",
    summary="List changes after a position",
    **route_docs(ChangePage),
)
async def list_changes(
    request: Request,
    after: Annotated[
        int,
        Query(
            ge=0, le=MAX_ROW_ID, description="`next` of the previous response; 0 for all changes."
        ),
    ] = 0,
    wait: Annotated[
        float,
        Query(ge=0, le=LONGEST_WAIT, description="Seconds to wait if there is no change yet."),
    ] = 0,
    limit: Limit = 100,
) -> Response:
    """In commit order, without gaps. Empty if no change arrived in time."""
    services = services_of(request)
    page = await run_in_threadpool(_read, services, after, limit)
    if not page.items and wait and await services.watch.wait(after, wait):
        page = await run_in_threadpool(_read, services, after, limit)
    return reply(page)


def _read(services: Services, after: int, limit: int) -> ChangePage:
    with services.sessions.reading() as session:
        items = [to_schema(row, ChangeItem) for row in read_changes(session, after, limit)]
    return ChangePage(items, items[-1].position if items else after)


POLL_SECONDS = 0.25


class ChangeWatch:
    """Notifies waiting requests of new entries in the change log."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._grown = asyncio.Condition()
        self._position = 0
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait until there is a change after a position; return False on timeout."""
        self._waiting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll())
        try:
            async with asyncio.timeout(seconds), self._grown:
                await self._grown.wait_for(lambda: self._position > after or self._failed())
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    async def close(self) -> None:
        """Stop polling the change log."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _failed(self) -> bool:
        # The waiting requests then query the catalog and report the error themselves.
        return self._task is None or self._task.done()

    async def _poll(self) -> None:
        try:
            while self._waiting:
                self._position = await run_in_threadpool(self._read)
                async with self._grown:
                    self._grown.notify_all()
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._task = None
            async with self._grown:
                self._grown.notify_all()

    def _read(self) -> int:
        with self._sessions.reading() as session:
            return last_position(session)
