"""A door whose writer is a process, which is started again whenever it ends.

Many senders then have two interpreters. While one sender goes on alone, and while there is no
process, a thread writes in its place.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import anyio.to_thread

from floe.api.doors import ThreadDoor, Wrong
from floe.catalog import Catalog
from floe.catalog.recording import EventClaim
from floe.errors import FloeError
from floe.events.ingest import MOST_WAITING, DoorBusyError
from floe.events.writer import (
    Frames,
    Orders,
    Outcome,
    Writer,
    error_of,
    frame,
    read_outcomes,
    spawn_writer,
)
from floe.spec.dates import DEFAULT_RULES, DateRules

log = logging.getLogger(__name__)
CALM = 5
"""After so many events that came while no other was written, the next is taken to do so too."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds before a new process is started; doubled each time that one ends soon."""
STEADY_SECONDS = 60.0
"""A process that has run this long begins a new count."""


class WriterEndedError(FloeError):
    """The process that writes events ended before it answered."""

    def __init__(self) -> None:
        super().__init__("The process that writes events has ended. Try again in a moment.")


class ProcessDoor:
    """Hands claims to a process, or to a thread where that is better or all there is."""

    def __init__(
        self,
        writer: Writer,
        catalog: Catalog,
        dates: DateRules = DEFAULT_RULES,
        spawn: Callable[[Orders], Writer] = spawn_writer,
    ) -> None:
        self._writer, self._catalog, self._dates = writer, catalog, dates
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._line: _Line | None = None
        self._instead: ThreadDoor | None = None
        self._claims = 0
        self._alone, self._here = 0, False
        self._closing = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> "ProcessDoor":
        """Connect to the process, and keep one running from now on."""
        line = await self._connect()
        self._keeping = self._loop.create_task(self._keep(line))
        return self

    @property
    def is_open(self) -> bool:
        return not self._closing.is_set()

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        line = self._line
        if line is None or not line.ready:
            return await self._in_thread().write(claims)
        if self._is_calm(len(claims)):
            return await self._write_here(claims)
        if self._claims and self._claims + len(claims) > MOST_WAITING:
            raise DoorBusyError
        self._claims += len(claims)
        try:
            return await line.write(claims)
        finally:
            self._claims -= len(claims)

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
        self._closing.set()
        if self._line is not None:
            self._line.finish()
        if self._keeping is not None:
            await self._keeping
        if self._instead is not None:
            await self._instead.close()

    async def _connect(self) -> "_Line":
        _, line = await self._loop.create_unix_connection(_Line, sock=self._writer.line)
        line.send(frame(self._writer.orders))
        self._line = line
        return line

    async def _keep(self, line: "_Line") -> None:
        """Start a new process whenever one has ended, with longer pauses if it ends soon."""
        ended_soon = 0
        while True:
            started = self._loop.time()
            await line.gone
            self._line = None
            await anyio.to_thread.run_sync(os.waitpid, self._writer.pid, 0)
            if self._closing.is_set():
                return
            ended_soon = 1 if self._loop.time() - started > STEADY_SECONDS else ended_soon + 1
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (ended_soon - 1))
            log.warning(
                "The process that writes events has ended. "
                "A thread writes in its place; a new process starts in %.1f s.",
                pause,
            )
            if await self._is_closed_within(pause) or not await self._start():
                return
            line = await self._connect()
            if self._closing.is_set():
                line.finish()

    async def _start(self) -> bool:
        """Start a process, however often it takes; return false if the door closed meanwhile."""
        while True:
            try:
                self._writer = self._spawn(self._writer.orders)
            except OSError as error:
                log.warning("The process that writes events cannot be started: %s", error)
                if await self._is_closed_within(LONGEST_PAUSE):
                    return False
            else:
                return True

    async def _is_closed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()

    def _in_thread(self) -> ThreadDoor:
        if self._instead is None:
            self._instead = ThreadDoor(self._catalog, self._dates)
        return self._instead


class _Line(asyncio.Protocol):
    """The connection to one process: claims go out under tickets, outcomes come back."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready = False
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.WriteTransport | None = None
        self._tickets = itertools.count()
        self._waiting: dict[int, asyncio.Future[Wrong]] = {}
        self._frames = Frames()
        self._packed: list[bytes] = []

    async def write(self, claims: Sequence[EventClaim]) -> Wrong:
        ticket = next(self._tickets)
        future: asyncio.Future[Wrong] = self._loop.create_future()
        self._waiting[ticket] = future
        try:
            self.send(frame((ticket, claims)))
            return await future
        finally:
            self._waiting.pop(ticket, None)

    def send(self, packed: bytes) -> None:
        """Send with all that others hand in at this moment: the writer makes one group of them."""
        if not self._packed:
            self._loop.call_soon(self._flush)
        self._packed.append(packed)

    def finish(self) -> None:
        """Send what waits, and let the process end when it has answered."""
        self._flush()
        if self._transport is not None:
            self._transport.write_eof()

    def _flush(self) -> None:
        packed, self._packed = self._packed, []
        if self._transport is not None and packed:
            self._transport.write(b"".join(packed))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        for packed in self._frames.take(data):
            self.ready = True
            for ticket, outcome in read_outcomes(packed):
                self._answer(ticket, outcome)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport, self.ready = None, False
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(WriterEndedError())
        if not self.gone.done():
            self.gone.set_result(None)

    def _answer(self, ticket: int, outcome: Outcome) -> None:
        future = self._waiting.get(ticket)
        # Whoever waited may have gone.
        if future is None or future.done():
            return
        if isinstance(outcome, tuple):
            future.set_exception(error_of(outcome))
        else:
            future.set_result({place: error_of(fault) for place, fault in outcome.items()})
