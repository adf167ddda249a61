"""Ways from the loop to the event door, and back with what became of the events."""

import asyncio
import itertools
import logging
import os
from collections import deque
from collections.abc import Sequence
from typing import Protocol

import anyio.to_thread

from floe.catalog import Catalog
from floe.catalog.recording import CatalogUnavailableError, EventClaim
from floe.errors import FloeError
from floe.events.ingest import MOST_WAITING, DoorBusyError, EventDoor
from floe.events.writer import LENGTH, Frames, Outcome, Writer, error_of, frame, read_outcomes
from floe.spec.dates import DEFAULT_RULES, DateRules

log = logging.getLogger(__name__)
Wrong = dict[int, FloeError]
CALM = 5
"""After so many events that came while no other was written, the next is taken to do so too."""


class Door(Protocol):
    """Where the loop hands in claims."""

    @property
    def is_open(self) -> bool:
        """Whether events are taken."""

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        """Wait for the commit of claims; return what was wrong with single ones, by place."""

    async def close(self) -> None:
        """Write what waits, and stop."""


class ThreadDoor:
    """A door whose writer is a thread.

    To wake the loop costs more than an answer does, so it is woken once for a group of them.
    """

    def __init__(self, catalog: Catalog, dates: DateRules = DEFAULT_RULES) -> None:
        self._loop = asyncio.get_running_loop()
        self._given: deque[tuple[asyncio.Future[Wrong], Wrong | BaseException]] = deque()
        self._door = EventDoor(catalog, answered=self._wake, dates=dates)

    @property
    def is_open(self) -> bool:
        return self._door.is_open

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        answer = _LoopAnswer(self._loop.create_future(), self._given)
        self._door.submit(claims, answer)
        return await answer.future

    async def close(self) -> None:
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


class ProcessDoor(asyncio.Protocol):
    """A door whose writer is a process, so that many senders have two interpreters.

    While one sender goes on alone, and if the process should end, a thread writes in its place.
    """

    def __init__(self, writer: Writer, catalog: Catalog, dates: DateRules = DEFAULT_RULES) -> None:
        self._writer, self._catalog, self._dates = writer, catalog, dates
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._instead: ThreadDoor | None = None
        self._tickets = itertools.count()
        self._waiting: dict[int, asyncio.Future[Wrong]] = {}
        self._claims = 0
        self._frames = Frames()
        self._packed: list[bytes] = []
        self._closing = False
        self._alone, self._here = 0, False
        self._gone = self._loop.create_future()

    async def open(self) -> "ProcessDoor":
        """Tell the writer that the catalog is ready."""
        transport, _ = await self._loop.create_unix_connection(lambda: self, sock=self._writer.line)
        self._transport = transport
        transport.write(LENGTH.pack(0))
        return self

    @property
    def is_open(self) -> bool:
        if self._closing:
            return False
        return self._transport is not None or self._in_thread().is_open

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        if self._transport is None:
            return await self._in_thread().write(claims)
        if self._is_calm(len(claims)):
            return await self._write_here(claims)
        if self._claims and self._claims + len(claims) > MOST_WAITING:
            raise DoorBusyError
        ticket = next(self._tickets)
        future: asyncio.Future[Wrong] = self._loop.create_future()
        self._waiting[ticket] = future
        self._claims += len(claims)
        try:
            self._send(frame((ticket, claims)))
            return await future
        finally:
            self._claims -= len(claims)
            self._waiting.pop(ticket, None)

    def _send(self, packed: bytes) -> None:
        """Send with all that others hand in at this moment: the writer makes one group of them."""
        if not self._packed:
            self._loop.call_soon(self._flush)
        self._packed.append(packed)

    def _flush(self) -> None:
        packed, self._packed = self._packed, []
        if self._transport is not None:
            self._transport.write(b"".join(packed))

    def _is_calm(self, events: int) -> bool:
        """Tell whether one sender waits for each answer before it goes on."""
        self._alone = 0 if self._claims or self._here else self._alone + events
        return self._alone > CALM and self._in_thread().is_open

    async def _write_here(self, claims: Sequence[EventClaim]) -> Wrong:
        """Write in this process: the way to the other would be a fifth of what an event takes."""
        self._here = True
        try:
            return await self._in_thread().write(claims)
        finally:
            self._here = False

    async def close(self) -> None:
        self._closing = True
        self._flush()
        if self._transport is not None:
            self._transport.write_eof()
        await self._gone
        await anyio.to_thread.run_sync(os.waitpid, self._writer.pid, 0)
        if self._instead is not None:
            await self._instead.close()

    def data_received(self, data: bytes) -> None:
        for packed in self._frames.take(data):
            for ticket, outcome in read_outcomes(packed):
                self._answer(ticket, outcome)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        if not self._closing:
            log.warning("The process that writes events has ended; a thread goes on in its place.")
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(CatalogUnavailableError("the writer of events has ended."))
        if not self._gone.done():
            self._gone.set_result(None)

    def _answer(self, ticket: int, outcome: Outcome) -> None:
        future = self._waiting.get(ticket)
        # Whoever waited may have gone.
        if future is None or future.done():
            return
        if isinstance(outcome, tuple):
            future.set_exception(error_of(outcome))
        else:
            future.set_result({place: error_of(fault) for place, fault in outcome.items()})

    def _in_thread(self) -> ThreadDoor:
        if self._instead is None:
            self._instead = ThreadDoor(self._catalog, self._dates)
        return self._instead
