"""Start-up of `floe api` to the first answer, compared with an empty FastAPI app.

Both are started in turn by the same Python in a new folder, so that other load affects both alike.
Both have compiled code, as after an installation with pip: compiling floe's sources at every
start, as with PYTHONDONTWRITEBYTECODE, is not measured.
"""

import http.client
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.result import Result
from tools.processes import running

ROUNDS = 5
MOST_SECONDS = 30.0
ALLOWED_MORE = 1.0

EMPTY = """
import uvicorn
from fastapi import FastAPI
app = FastAPI()
@app.get("/api/v1/health")
def health() -> dict[str, str]:
    return {}
uvicorn.run(app, host="127.0.0.1", port=PORT, log_level="warning", access_log=False, ws="none")
"""


def run() -> Iterator[Result]:
    """Measure how much longer `floe api` takes than an app that does nothing."""
    with tempfile.TemporaryDirectory() as compiled:
        pairs = [_pair(compiled) for _ in range(1 + ROUNDS)]
    # The first start of each compiles its code.
    empty, ours = zip(*pairs[1:], strict=True)
    more = statistics.median(ours) - statistics.median(empty)
    yield Result(
        "floe api in a fresh folder, seconds more than an empty FastAPI app",
        more,
        ALLOWED_MORE,
        unit=" s",
        note=f"{statistics.median(ours):.2f} s against {statistics.median(empty):.2f} s",
    )


def _pair(compiled: str) -> tuple[float, float]:
    """Start the empty app, then `floe api`."""
    port = _free_port()
    empty = [sys.executable, "-c", EMPTY.replace("PORT", str(port))]
    first = _seconds(empty, port, compiled)
    port = _free_port()
    floe = Path(sys.executable).with_name("floe")
    return first, _seconds([str(floe), "api", "--port", str(port)], port, compiled)


def _environ(compiled: str) -> dict[str, str]:
    ours = {k: v for k, v in os.environ.items() if not k.startswith("FLOE_")}
    ours.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**ours, "PYTHONPYCACHEPREFIX": compiled}


def _seconds(command: list[str], port: int, compiled: str) -> float:
    """Start a server in its own folder and wait for its first answer."""
    with tempfile.TemporaryDirectory() as folder:
        environ = _environ(compiled)
        started = time.perf_counter()
        pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
        with running(command, cwd=folder, env=environ, **pipes) as server:
            _wait(server, port, started)
            return time.perf_counter() - started


def _wait(server: "subprocess.Popen[bytes]", port: int, started: float) -> None:
    while time.perf_counter() - started < MOST_SECONDS:
        if server.poll() is not None:
            output = server.stderr.read().decode() if server.stderr else ""
            raise RuntimeError(f"The server ended before it answered: {output}")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=MOST_SECONDS)
        try:
            connection.request("GET", "/api/v1/health")
            connection.getresponse().read()
        except ConnectionRefusedError:
            time.sleep(0.005)
        else:
            return
        finally:
            connection.close()
    raise TimeoutError("The server did not answer in time.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
