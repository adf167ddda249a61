"""A local OpenLineage server that stores events and fails on request."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class LineageServer:
    """Responds with `answers` in turn, then with 200; stores events answered with 200."""

    def __init__(self, port: int = 0) -> None:
        self.bodies: list[Any] = []
        self.keys: list[str | None] = []
        self.answers: list[int] = []
        self.hold: threading.Event | None = None
        self.waiting = 0
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._http.daemon_threads = True
        self.port = self._http.server_port
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> "LineageServer":
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def jobs(self) -> list[str]:
        return [body["job"]["name"] for body in self.bodies]

    def take(self, path: str, key: str | None, body: bytes) -> int:
        assert path == "/api/v1/lineage"
        if self.hold is not None:
            self.waiting += 1
            self.hold.wait(60)
        status = self.answers.pop(0) if self.answers else 200
        self.keys.append(key)
        if status == 200:
            self.bodies.append(json.loads(body))
        return status


def _handler(server: LineageServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = server.take(self.path, self.headers["Authorization"], body)
            content = b"" if status == 200 else b'{"detail": "invalid event"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Keep the test's output clean."""

    return Handler
