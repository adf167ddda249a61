"""Threads for routes that wait for the catalog, quicker than the way of FastAPI."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial, wraps
from typing import Any

from starlette.requests import Request
from starlette.responses import Response


def in_thread(endpoint: Callable[..., Response]) -> Callable[..., Awaitable[Response]]:
    """Let an endpoint run in one of the threads of the app that its request came to."""

    @wraps(endpoint)
    async def run(request: Request, **parameters: Any) -> Response:
        threads = request.app.state.services.threads
        call = partial(endpoint, request, **parameters)
        return await asyncio.get_running_loop().run_in_executor(threads, call)

    return run
