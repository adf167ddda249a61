"""The probes of services, and the verdicts they give."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from floe.services.service import (
    InconclusiveProbeError,
    Verdict,
    answers_socket,
    api_is_ready,
    has_heartbeat,
    loads_project,
)


class FakeServer:
    """A web server that gives the same answer to every request."""

    def __init__(self) -> None:
        self.code, self.content = 200, b"{}"
        self.authorization: str | None = None
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(outer.code)
                self.end_headers()
                self.wfile.write(outer.content)

            def do_POST(self) -> None:
                outer.authorization = self.headers["Authorization"]
                self.rfile.read(int(self.headers["Content-Length"]))
                self.do_GET()

            def log_message(self, *words: Any) -> None:
                """Print nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, **data: Any) -> None:
        self.content = json.dumps({"data": data}).encode()


@pytest.fixture
def web() -> Iterator[FakeServer]:
    server = FakeServer()
    thread = threading.Thread(target=server.server.serve_forever)
    thread.start()
    yield server
    server.server.shutdown()
    thread.join()
    server.server.server_close()


def unused_url() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_an_api_that_is_not_ready_is_faulty_with_the_reason(web: FakeServer) -> None:
    probe = api_is_ready(web.url)
    assert probe().healthy
    web.code, web.content = 503, b'{"detail": "The catalog cannot be written"}'
    assert probe() == Verdict(True, "not ready: The catalog cannot be written", faulty=True)
    web.content = b"<html>"
    assert (probe().healthy, probe().faulty) == (True, True)


def test_an_api_that_fails_or_does_not_answer_is_unhealthy(web: FakeServer) -> None:
    web.code = 500
    assert not api_is_ready(web.url)().healthy
    gone = api_is_ready(unused_url())()
    assert not gone.healthy
    assert "does not answer" in gone.message


def test_a_socket_is_healthy_when_a_server_listens(tmp_path: Path) -> None:
    path = tmp_path / "s"
    assert not answers_socket(path)().healthy
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert answers_socket(path)().healthy


def entry(status: str, result: Any) -> dict[str, Any]:
    return {
        "locationEntries": [{"name": "night", "loadStatus": status, "locationOrLoadError": result}]
    }


def test_a_project_that_does_not_load_is_faulty_with_a_one_line_reason(web: FakeServer) -> None:
    web.says(workspaceOrError=entry("LOADED", {}))
    assert loads_project(web.url, "secret")() == Verdict(True)
    assert web.authorization == "Bearer secret"
    cause = {"message": "floe.errors.SpecError:\n\nfloe.yaml:3: no module 'assets'\n"}
    error = {"message": "DagsterUserCodeLoadError: could not load", "causes": [cause]}
    web.says(workspaceOrError=entry("LOADED", error))
    message = "the project does not load: floe.errors.SpecError: floe.yaml:3: no module 'assets'"
    assert loads_project(web.url, "secret")() == Verdict(True, message, faulty=True)


@pytest.mark.parametrize("workspace", [entry("LOADING", None), {"locationEntries": []}, {}])
def test_a_loading_project_is_not_ready(web: FakeServer, workspace: dict[str, Any]) -> None:
    web.says(workspaceOrError=workspace)
    assert not loads_project(web.url, "secret")().healthy
    assert not loads_project(unused_url(), "secret")().healthy


def test_a_daemon_is_healthy_when_all_required_parts_are(web: FakeServer) -> None:
    statuses = [
        {"daemonType": "SENSOR", "required": True, "healthy": True},
        {"daemonType": "ASSET", "required": False, "healthy": False},
    ]
    web.says(instance={"daemonHealth": {"allDaemonStatuses": statuses}})
    assert has_heartbeat(web.url, "secret")() == Verdict(True)
    statuses.append({"daemonType": "SCHEDULER", "required": True, "healthy": False})
    web.says(instance={"daemonHealth": {"allDaemonStatuses": statuses}})
    assert has_heartbeat(web.url, "secret")() == Verdict(False, "no heartbeat from SCHEDULER")


def test_the_daemons_probe_is_inconclusive_without_the_web_interface() -> None:
    with pytest.raises(InconclusiveProbeError):
        has_heartbeat(unused_url(), "secret")()
