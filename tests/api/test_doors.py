"""Event doors: a thread writes for a single sender, a process for several."""

import asyncio
import os
import shutil
import socket
from collections.abc import Awaitable, Callable

import msgspec
from sqlalchemy import func, select

from floe.api.process_door import CALM_EVENTS, ProcessDoor
from floe.catalog.database import Catalog
from floe.catalog.recording import EventClaim
from floe.catalog.tables import RunEvent
from floe.events.ingest import read_claim
from floe.events.writer import READY, Frames, Writer, WriterSettings, frame, read_request
from tests.api.night import event

SETTINGS = WriterSettings("sqlite:///elsewhere.db", [])


class Process:
    """The other end of the connection; answers when the test says so."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._frames = line, Frames()
        self.given: list[int] = []

    async def start(self) -> None:
        """Receive the settings, and report ready."""
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(self._line, 1 << 20) == frame(SETTINGS)
        await loop.sock_sendall(self._line, frame(READY))
        await asyncio.sleep(0.05)

    async def hear(self) -> None:
        """Receive the next requests."""
        data = await asyncio.get_running_loop().sock_recv(self._line, 1 << 20)
        self.given += [read_request(packed)[0] for packed in self._frames.take(data)]

    async def answer(self) -> None:
        """Report all received claims as written."""
        outcomes: list[tuple[int, dict[int, object]]] = [(ticket, {}) for ticket in self.given]
        self.given = []
        await asyncio.get_running_loop().sock_sendall(self._line, frame(outcomes))


def claim(index: int) -> EventClaim:
    return read_claim(msgspec.json.encode({**event(), "index": index}))


def written_here(catalog: Catalog) -> int:
    with catalog.reading() as session:
        return session.scalar(select(func.count()).select_from(RunEvent)) or 0


def with_door(catalog: Catalog, use: Callable[[ProcessDoor, Process], Awaitable[None]]) -> None:
    """Open a door whose writer process is played by the test."""

    async def go() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        pid = os.posix_spawn(shutil.which("true") or "true", ["true"], {})
        door = await ProcessDoor(Writer(pid, ours, SETTINGS), catalog).open()
        process = Process(theirs)
        try:
            await process.start()
            await use(door, process)
        finally:
            closing = asyncio.create_task(door.close())
            await asyncio.sleep(0)
            theirs.close()
            await closing

    asyncio.run(go())


def test_events_of_a_single_sender_are_written_in_a_thread_after_a_while(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        for index in range(CALM_EVENTS):
            writing = asyncio.create_task(door.write([claim(index)]))
            await process.hear()
            await process.answer()
            assert await writing == {}
        assert await door.write([claim(CALM_EVENTS)]) == {}

    with_door(catalog, send)
    assert written_here(catalog) == 1


def test_a_single_batch_is_written_in_a_thread_immediately(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, _: Process) -> None:
        assert await door.write([claim(index) for index in range(CALM_EVENTS + 1)]) == {}

    with_door(catalog, send)
    assert written_here(catalog) == CALM_EVENTS + 1


def test_concurrent_events_go_to_the_process(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        many = [claim(index) for index in range(CALM_EVENTS + 1)]
        first = asyncio.create_task(door.write(many))
        # Others arrive while the first is being written in the thread.
        await asyncio.sleep(0)
        others = [asyncio.create_task(door.write([claim(100 + index)])) for index in range(3)]
        while len(process.given) < len(others):
            await process.hear()
        await process.answer()
        assert await asyncio.gather(first, *others) == [{}] * 4

    with_door(catalog, send)
    assert written_here(catalog) == CALM_EVENTS + 1


def test_claims_of_one_loop_iteration_are_sent_together(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        writing = [asyncio.create_task(door.write([claim(index)])) for index in range(3)]
        await process.hear()
        assert len(process.given) == len(writing)
        await process.answer()
        assert await asyncio.gather(*writing) == [{}] * 3

    with_door(catalog, send)
    assert written_here(catalog) == 0
