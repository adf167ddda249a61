"""Who writes an event: a thread while one sender goes on alone, a process when several send."""

import asyncio
import os
import shutil
import socket
from collections.abc import Awaitable, Callable

import msgspec
from sqlalchemy import func, select

from floe.api.process_door import CALM, ProcessDoor
from floe.catalog.database import Catalog
from floe.catalog.recording import EventClaim
from floe.catalog.tables import RunEvent
from floe.events.ingest import read_claim
from floe.events.writer import READY, Frames, Orders, Writer, frame, read_request
from tests.api.night import event

ORDERS = Orders("sqlite:///elsewhere.db", [])


class Process:
    """Stands at the other end of the line, and answers when it is told to."""

    def __init__(self, line: socket.socket) -> None:
        self._line, self._frames = line, Frames()
        self.given: list[int] = []

    async def start(self) -> None:
        """Hear which catalog it is, and say that it is ready."""
        loop = asyncio.get_running_loop()
        assert await loop.sock_recv(self._line, 1 << 20) == frame(ORDERS)
        await loop.sock_sendall(self._line, frame(READY))
        await asyncio.sleep(0.05)

    async def hear(self) -> None:
        """Take what comes next."""
        data = await asyncio.get_running_loop().sock_recv(self._line, 1 << 20)
        self.given += [read_request(packed)[0] for packed in self._frames.take(data)]

    async def answer(self) -> None:
        """Say of all that was given that it is written."""
        outcomes: list[tuple[int, dict[int, object]]] = [(ticket, {}) for ticket in self.given]
        self.given = []
        await asyncio.get_running_loop().sock_sendall(self._line, frame(outcomes))


def claim(number: int) -> EventClaim:
    return read_claim(msgspec.json.encode({**event(), "number": number}))


def written_here(catalog: Catalog) -> int:
    with catalog.reading() as session:
        return session.scalar(select(func.count()).select_from(RunEvent)) or 0


def with_door(catalog: Catalog, use: Callable[[ProcessDoor, Process], Awaitable[None]]) -> None:
    """Open a door whose process is the test's own."""

    async def go() -> None:
        ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        pid = os.posix_spawn(shutil.which("true") or "true", ["true"], {})
        door = await ProcessDoor(Writer(pid, ours, ORDERS), catalog).open()
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


def test_who_sends_alone_is_written_here_after_a_while(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        for number in range(CALM):
            writing = asyncio.create_task(door.write([claim(number)]))
            await process.hear()
            await process.answer()
            assert await writing == {}
        assert await door.write([claim(CALM)]) == {}

    with_door(catalog, send)
    assert written_here(catalog) == 1


def test_a_batch_that_comes_alone_is_written_here_at_once(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, _: Process) -> None:
        assert await door.write([claim(number) for number in range(CALM + 1)]) == {}

    with_door(catalog, send)
    assert written_here(catalog) == CALM + 1


def test_those_who_send_at_once_go_to_the_process(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        many = [claim(number) for number in range(CALM + 1)]
        first = asyncio.create_task(door.write(many))
        # The first is being written here; meanwhile others come.
        await asyncio.sleep(0)
        others = [asyncio.create_task(door.write([claim(100 + place)])) for place in range(3)]
        while len(process.given) < len(others):
            await process.hear()
        await process.answer()
        assert await asyncio.gather(first, *others) == [{}] * 4

    with_door(catalog, send)
    assert written_here(catalog) == CALM + 1


def test_what_is_handed_in_at_one_moment_goes_as_one(catalog: Catalog) -> None:
    async def send(door: ProcessDoor, process: Process) -> None:
        writing = [asyncio.create_task(door.write([claim(number)])) for number in range(3)]
        await process.hear()
        assert len(process.given) == len(writing)
        await process.answer()
        assert await asyncio.gather(*writing) == [{}] * 3

    with_door(catalog, send)
    assert written_here(catalog) == 0
