"""Wait for changes: one look at the log for all who wait, however many they are."""

import asyncio
from contextlib import suppress

from starlette.concurrency import run_in_threadpool

from floe.catalog import last_position
from floe.catalog.sessions import Sessions

LOOK_SECONDS = 0.25


class ChangeWatch:
    """Tells those who wait that the log of changes has grown."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._grown = asyncio.Condition()
        self._position = 0
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None

    async def wait(self, after: int, seconds: float) -> bool:
        """Wait until there is a change after a position; False when the time is over before."""
        self._waiting += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(seconds), self._grown:
                await self._grown.wait_for(lambda: self._position > after or self._failed())
        except TimeoutError:
            return False
        finally:
            self._waiting -= 1
        return True

    async def close(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    def _failed(self) -> bool:
        # Whoever waits asks the catalog then, and gets the error as its own answer.
        return self._task is None or self._task.done()

    async def _look(self) -> None:
        try:
            while self._waiting:
                self._position = await run_in_threadpool(self._read)
                async with self._grown:
                    self._grown.notify_all()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            self._task = None
            async with self._grown:
                self._grown.notify_all()

    def _read(self) -> int:
        with self._sessions.reading() as session:
            return last_position(session)
