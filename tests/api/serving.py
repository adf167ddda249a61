"""A real server in this process, on a free port."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from floe.api.server import listen, url_of


@contextmanager
def served(app: FastAPI) -> Iterator[str]:
    """Serve an app; yield its URL."""
    listener = listen("127.0.0.1", 0, login=True)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield url_of(listener)
    finally:
        server.should_exit = True
        thread.join(30)
        listener.close()
