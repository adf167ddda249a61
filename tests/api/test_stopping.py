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
    """A server leaves all that is loaded out of collections for good; the tests go on."""
    yield
    gc.unfreeze()


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_before_the_server_listens_for_it_is_heeded(
    stop: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        done.append("started")
        yield
        done.append("ended")

    listener = listen("127.0.0.1", 0, login=True)
    # The last thing that happens before uvicorn takes the signals over.
    original = uvicorn.Server.run

    def told(self: uvicorn.Server, sockets: list[socket.socket]) -> None:
        signal.raise_signal(stop)
        original(self, sockets=sockets)

    monkeypatch.setattr(uvicorn.Server, "run", told)
    serve(FastAPI(lifespan=life), listener)
    assert done == ["started", "ended"]
