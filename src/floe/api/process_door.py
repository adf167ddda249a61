"""An event door whose writer is a separate process, restarted whenever it ends.

So the API and the writer each have their own interpreter. A thread writes instead while there is
only one sender, or while the process is not running.
"""

import asyncio
import itertools
import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import cast

import anyio.to_thread

from floe.api.doors import ClaimErrors, ThreadDoor
from floe.catalog import Catalog
from floe.catalog.recording import EventClaim
from floe.errors import FloeError
from floe.events.ingest import MAX_WAITING, DoorBusyError
from floe.events.writer import (
    Frames,
    Outcome,
    Writer,
    WriterSettings,
    error_of,
    frame,
    read_outcomes,
    spawn_writer,
)
from floe.spec.dates import DEFAULT_RULES, DateRules

log = logging.getLogger(__name__)
CALM_EVENTS = 5
"""Number of consecutive events without concurrency, after which a thread writes them."""
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0
"""Seconds before a new process is started; doubled each time a process ends early."""
STEADY_SECONDS = 60.0
"""A process that ran this long resets the pause."""


class WriterEndedError(FloeError):
    """The event writer process ended before it answered."""

    def __init__(self) -> None:
        super().__init__("The event writer process has ended. Try again in a moment.")


class ProcessDoor:
    """Writes claims in a process, or in a thread if that is faster."""

    def __init__(
        self,
        writer: Writer,
        catalog: Catalog,
        dates: DateRules = DEFAULT_RULES,
        spawn: Callable[[WriterSettings], Writer] = spawn_writer,
    ) -> None:
        self._writer, self._catalog, self._dates = writer, catalog, dates
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()
        self._line: _Connection | None = None
        self._fallback: ThreadDoor | None = None
        self._claims = 0
        self._alone, self._here = 0, False
        self._closing = asyncio.Event()
        self._keeping: asyncio.Task[None] | None = None

    async def open(self) -> "ProcessDoor":
        """Connect to the process, and restart it whenever it ends."""
        line = await self._connect()
        self._keeping = self._loop.create_task(self._keep(line))
        return self

    @property
    def is_open(self) -> bool:
        return not self._closing.is_set()

    async def write(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        line = self._line
        if line is None or not line.ready:
            return await self._in_thread().write(claims)
        if self._is_calm(len(claims)):
            return await self._write_here(claims)
        if self._claims and self._claims + len(claims) > MAX_WAITING:
            raise DoorBusyError
        self._claims += len(claims)
        try:
            return await line.write(claims)
        finally:
            self._claims -= len(claims)

    def _is_calm(self, events: int) -> bool:
        """Return whether a single sender waits for each answer before the next event."""
        self._alone = 0 if self._claims or self._here else self._alone + events
        return self._alone > CALM_EVENTS and self._in_thread().is_open

    async def _write_here(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        """Write in this process, because sending to the other takes a fifth of the time."""
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
        if self._fallback is not None:
            await self._fallback.close()

    async def _connect(self) -> "_Connection":
        _, line = await self._loop.create_unix_connection(_Connection, sock=self._writer.line)
        line.send(frame(self._writer.settings))
        self._line = line
        return line

    async def _keep(self, line: "_Connection") -> None:
        """Start a new process whenever one ends, with longer pauses if it ends early."""
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
                "The event writer process has ended. "
                "A thread writes events until a new process starts in %.1f s.",
                pause,
            )
            if await self._is_closed_within(pause) or not await self._start():
                return
            line = await self._connect()
            if self._closing.is_set():
                line.finish()

    async def _start(self) -> bool:
        """Start a process, retrying until it works; return False if the door is closed."""
        while True:
            try:
                self._writer = self._spawn(self._writer.settings)
            except OSError as error:
                log.warning("Cannot start the event writer process: %s", error)
                if await self._is_closed_within(LONGEST_PAUSE):
                    return False
            else:
                return True

    async def _is_closed_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), seconds)
        return self._closing.is_set()

    def _in_thread(self) -> ThreadDoor:
        if self._fallback is None:
            self._fallback = ThreadDoor(self._catalog, self._dates)
        return self._fallback


class _Connection(asyncio.Protocol):
    """The connection to a writer process: sends claims, receives outcomes."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.ready = False
        self.gone: asyncio.Future[None] = self._loop.create_future()
        self._transport: asyncio.WriteTransport | None = None
        self._tickets = itertools.count()
        self._waiting: dict[int, asyncio.Future[ClaimErrors]] = {}
        self._frames = Frames()
        self._packed: list[bytes] = []

    async def write(self, claims: Sequence[EventClaim]) -> ClaimErrors:
        ticket = next(self._tickets)
        future: asyncio.Future[ClaimErrors] = self._loop.create_future()
        self._waiting[ticket] = future
        try:
            self.send(frame((ticket, claims)))
            return await future
        finally:
            self._waiting.pop(ticket, None)

    def send(self, packed: bytes) -> None:
        """Send together with everything queued in this loop iteration, as one group."""
        if not self._packed:
            self._loop.call_soon(self._flush)
        self._packed.append(packed)

    def finish(self) -> None:
        """Send pending claims, and let the process end after its answers."""
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
        # The waiting request may have been cancelled.
        if future is None or future.done():
            return
        if isinstance(outcome, tuple):
            future.set_exception(error_of(outcome))
        else:
            future.set_result({index: error_of(fault) for index, fault in outcome.items()})
