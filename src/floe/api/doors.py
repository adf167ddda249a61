"""How the API passes events to the event door.

`ThreadDoor` writes in a thread, `process_door.py` in a process. `WatchedDoor` wraps either of them
and tracks whether the catalog accepts events, which readiness reports.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import anyio.to_thread

from floe.catalog import Catalog
from floe.catalog.recording import CatalogUnavailableError, EventClaim
from floe.errors import FloeError
from floe.events.ingest import DoorClosedError, EventDoor
from floe.spec.dates import DEFAULT_RULES, DateRules

ClaimErrors = dict[int, FloeError]


class Door(Protocol):
    """Writes claims for coroutines of the event loop."""

    @property
    def is_open(self) -> bool:
        """Whether events are accepted."""

    async def write(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        """Wait until claims are committed; return the errors of single claims by index."""

    async def close(self) -> None:
        """Write pending claims, then stop."""


class ThreadDoor:
    """Writes claims in a thread.

    Waking the event loop is expensive, so it is woken once per group of answers.
    """

    def __init__(self, catalog: Catalog, dates: DateRules = DEFAULT_RULES) -> None:
        self._catalog, self._dates = catalog, dates
        self._loop = asyncio.get_running_loop()
        self._results: deque[tuple[asyncio.Future[ClaimErrors], ClaimErrors | BaseException]] = (
            deque()
        )
        self._closing = False
        self._door = self._open()

    def _open(self) -> EventDoor:
        return EventDoor(self._catalog, answered=self._wake, dates=self._dates)

    @property
    def is_open(self) -> bool:
        return not self._closing

    async def write(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        if self._closing:
            raise DoorClosedError
        if not self._door.is_open:
            # The thread ended with an error, which is in the log. Start a new one.
            self._door = self._open()
        answer = _LoopAnswer(self._loop.create_future(), self._results)
        self._door.submit(claims, answer)
        return await answer.future

    async def close(self) -> None:
        self._closing = True
        await anyio.to_thread.run_sync(self._door.close)

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._deliver_results)

    def _deliver_results(self) -> None:
        while self._results:
            future, outcome = self._results.popleft()
            # The waiting request may have been cancelled.
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class _LoopAnswer:
    """The result of a write: set in the door's thread, awaited in the loop."""

    def __init__(
        self,
        future: asyncio.Future[ClaimErrors],
        results: deque[tuple[asyncio.Future[ClaimErrors], ClaimErrors | BaseException]],
    ) -> None:
        self.future, self._results = future, results

    def set_result(self, wrong: ClaimErrors) -> None:
        self._results.append((self.future, wrong))

    def set_exception(self, error: BaseException) -> None:
        self._results.append((self.future, error))


log = logging.getLogger(__name__)
RETRY_SECONDS = 2.0


class WatchedDoor:
    """Passes claims to a door, and keeps track of outages of the catalog."""

    def __init__(self, door: Door, retry_seconds: float = RETRY_SECONDS) -> None:
        self._door, self._retry_seconds = door, retry_seconds
        self._retrying: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()
        self.outage: str | None = None
        """Why events cannot be stored, or None if they can."""

    @property
    def is_open(self) -> bool:
        return self._door.is_open

    async def write(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        try:
            wrong = await self._door.write(claims)
        except CatalogUnavailableError as error:
            self._note(claims[0], error)
            raise
        for index, fault in wrong.items():
            if isinstance(fault, CatalogUnavailableError):
                self._note(claims[index], fault)
        return wrong

    async def close(self) -> None:
        self._closing.set()
        if self._retrying is not None:
            await self._retrying
        await self._door.close()

    def _note(self, claim: EventClaim, error: CatalogUnavailableError) -> None:
        if self.outage is not None:
            return
        log.warning("Events cannot be stored; senders must retry. %s", error)
        self.outage = error.reason
        self._retrying = asyncio.get_running_loop().create_task(self._retry(claim))

    async def _retry(self, claim: EventClaim) -> None:
        """Retry an event until the database accepts or rejects it."""
        try:
            while not await self._is_closed_within(self._retry_seconds):
                if await self._is_settled(claim):
                    log.warning("Events can be stored again.")
                    return
        finally:
            self.outage = None

    async def _is_settled(self, claim: EventClaim) -> bool:
        try:
            error: FloeError | None = (await self._door.write([claim])).get(0)
        except FloeError as outage:
            # A busy door, or one whose process has ended, does not mean a database outage.
            if isinstance(outage, CatalogUnavailableError):
                self.outage = outage.reason
            return False
        if isinstance(error, CatalogUnavailableError):
            self.outage = error.reason
            return False
        return True

    async def _is_closed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()
