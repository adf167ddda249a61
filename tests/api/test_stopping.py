"""`floe api` ends when it is told to, at whatever moment of its start that is."""

import gc
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import uvicorn
from fastapi import FastAPI

from floe.api.server import listen, serve


@pytest.fixture(autouse=True)
def _collector_as_before() -> Iterator[None]:
    """Undo the server's freeze of the garbage collector for the other tests."""
    yield
    gc.unfreeze()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_signal_before_the_server_starts_is_handled(
    stop: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        done.append("started")
        yield
        done.append("ended")

    listener = listen("127.0.0.1", 0, login=True)
    # The last step before uvicorn takes over the signals.
    original = uvicorn.Server.run

    def signal_first(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        signal.raise_signal(stop)
        original(self, sockets=sockets)

    monkeypatch.setattr(uvicorn.Server, "run", signal_first)
    serve(FastAPI(lifespan=life), listener)
    assert done == ["started", "ended"]
