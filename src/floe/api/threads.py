"""Threads for routes that wait for the catalog, and the way back from the event door's own.

Both are quicker than the ways of FastAPI and asyncio.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from floe.errors import FloeError

Wrong = dict[int, FloeError]


def in_thread(endpoint: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    """Let an endpoint run in one of the threads of the app that its request came to."""

    @wraps(endpoint)
    async def run(request: Request, **parameters: Any) -> Response:
        threads = request.app.state.services.threads
        call = partial(endpoint, request, **parameters)
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    return run


class LoopAnswers:
    """Answers of the event door, which its thread gives and the loop waits for.

    To wake the loop costs more than an answer does, so it is woken once for a group of them.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.given: deque[tuple[asyncio.Future[Wrong], Wrong | BaseException]] = deque()

    def expect(self) -> "LoopAnswer":
        """Return an answer that the loop can wait for."""
        return LoopAnswer(self._loop.create_future(), self.given)

    def hand_out(self) -> None:
        """Wake whoever waits for what was given. To be called from the door's thread."""
        self._loop.call_soon_threadsafe(self._hand_out)

    def _hand_out(self) -> None:
        while self.given:
            future, outcome = self.given.popleft()
            # Whoever waited may have gone.
            if future.done():
                continue
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)


class LoopAnswer:
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
