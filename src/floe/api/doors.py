"""The way from the event loop to the event door: the contract, and a door in a thread."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread

from floe.catalog import Catalog
from floe.catalog.recording import EventClaim
from floe.errors import FloeError
from floe.events.ingest import DoorClosedError, EventDoor
from floe.spec.dates import DEFAULT_RULES, DateRules

Wrong = dict[int, FloeError]


class Door(Protocol):
    """Where the loop hands in claims."""

    @property
    def is_open(self) -> bool:
        """Whether events are taken."""

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        """Wait for the commit of claims; return the errors of single claims, by place."""

    async def close(self) -> None:
        """Write what waits, and stop."""


class ThreadDoor:
    """A door whose writer is a thread.

    To wake the loop costs more than an answer does, so it is woken once for a group of them.
    """

    def __init__(self, catalog: Catalog, dates: DateRules = DEFAULT_RULES) -> None:
        self._catalog, self._dates = catalog, dates
        self._loop = asyncio.get_running_loop()
        self._given: deque[tuple[asyncio.Future[Wrong], Wrong | BaseException]] = deque()
        self._closing = False
        self._door = self._open()

    def _open(self) -> EventDoor:
        return EventDoor(self._catalog, answered=self._wake, dates=self._dates)

    @property
    def is_open(self) -> bool:
        return not self._closing

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        if self._closing:
            raise DoorClosedError
        if not self._door.is_open:
            # Its thread ended with an error, which is in the log. The next event gets a new one.
            self._door = self._open()
        answer = _LoopAnswer(self._loop.create_future(), self._given)
        self._door.submit(claims, answer)
        return await answer.future

    async def close(self) -> None:
        self._closing = True
        await anyio.to_thread.run_sync(self._door.close)

    def _wake(self) -> None:
        self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        while self._given:
            future, outcome = self._given.popleft()
            # Whoever waited may have gone.
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class _LoopAnswer:
    """One answer: given in the door's thread, waited for in the loop."""

    def __init__(
        self,
        future: asyncio.Future[Wrong],
        given: deque[tuple[asyncio.Future[Wrong], Wrong | BaseException]],
    ) -> None:
        self.future, self._given = future, given

    def set_result(self, wrong: Wrong) -> None:
        self._given.append((self.future, wrong))

    def set_exception(self, error: BaseException) -> None:
        self._given.append((self.future, error))
