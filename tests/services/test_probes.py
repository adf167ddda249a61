"""What services answer, and what follows from it."""

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from floe.services.probes import answers_socket, beats, is_ready, shows_project
from floe.services.service import CannotTellError, Verdict


class Answering:
    """A web server that answers everything alike."""

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
                """Say nothing."""

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def says(self, **data: Any) -> None:
        self.content = json.dumps({"data": data}).encode()


@pytest.fixture
def web() -> Iterator[Answering]:
    one = Answering()
    thread = threading.Thread(target=one.server.serve_forever)
    thread.start()
    yield one
    one.server.shutdown()
    thread.join()
    one.server.server_close()


def nobody() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_an_api_that_is_not_ready_says_why_and_is_not_restarted_for_it(web: Answering) -> None:
    ask = is_ready(web.url)
    assert ask().well
    web.code, web.content = 503, b'{"detail": "The catalog cannot be written"}'
    assert ask() == Verdict(True, "not ready: The catalog cannot be written", faulty=True)
    web.content = b"<html>"
    assert (ask().well, ask().faulty) == (True, True)


def test_an_api_that_fails_or_does_not_answer_is_not_well(web: Answering) -> None:
    web.code = 500
    assert not is_ready(web.url)().well
    gone = is_ready(nobody())()
    assert not gone.well
    assert "does not answer" in gone.said


def test_a_socket_is_well_when_somebody_listens(tmp_path: Path) -> None:
    path = tmp_path / "s"
    assert not answers_socket(path)().well
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert answers_socket(path)().well


def entry(status: str, found: Any) -> dict[str, Any]:
    return {
        "locationEntries": [{"name": "night", "loadStatus": status, "locationOrLoadError": found}]
    }


def test_a_project_that_does_not_load_is_said_in_one_line(web: Answering) -> None:
    web.says(workspaceOrError=entry("LOADED", {}))
    assert shows_project(web.url, "secret")() == Verdict(True)
    assert web.authorization == "Bearer secret"
    cause = {"message": "floe.errors.SpecError:\n\nfloe.yaml:3: no module 'assets'\n"}
    error = {"message": "DagsterUserCodeLoadError: could not load", "causes": [cause]}
    web.says(workspaceOrError=entry("LOADED", error))
    said = "the project does not load: floe.errors.SpecError: floe.yaml:3: no module 'assets'"
    assert shows_project(web.url, "secret")() == Verdict(True, said, faulty=True)


@pytest.mark.parametrize("workspace", [entry("LOADING", None), {"locationEntries": []}, {}])
def test_a_project_that_is_still_loading_is_not_ready(
    web: Answering, workspace: dict[str, Any]
) -> None:
    web.says(workspaceOrError=workspace)
    assert not shows_project(web.url, "secret")().well
    assert not shows_project(nobody(), "secret")().well


def test_a_daemon_is_well_when_all_that_it_must_do_has_been_done_lately(web: Answering) -> None:
    statuses = [
        {"daemonType": "SENSOR", "required": True, "healthy": True},
        {"daemonType": "ASSET", "required": False, "healthy": False},
    ]
    web.says(instance={"daemonHealth": {"allDaemonStatuses": statuses}})
    assert beats(web.url, "secret")() == Verdict(True)
    statuses.append({"daemonType": "SCHEDULER", "required": True, "healthy": False})
    web.says(instance={"daemonHealth": {"allDaemonStatuses": statuses}})
    assert beats(web.url, "secret")() == Verdict(False, "no sign of life from SCHEDULER")


def test_of_a_daemon_nothing_is_known_when_the_web_interface_is_away() -> None:
    with pytest.raises(CannotTellError):
        beats(nobody(), "secret")()
