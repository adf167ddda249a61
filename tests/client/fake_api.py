"""An HTTP server that answers like the event door and stores each event once."""

import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

Answer = tuple[int, dict[str, Any]]


class FakeApi:
    """Listens on a free port. `gate` decides about requests, `judge` about events."""

    def __init__(self) -> None:
        self.taken: list[dict[str, Any]] = []
        self.posts: list[str] = []
        self.tokens: list[str | None] = []
        self.judge: Callable[[dict[str, Any]], Answer | None] = lambda _: None
        self.gate: Callable[[], Answer | None] = lambda: None
        self.has_batches = True
        self.delay = 0.0
        self._hashes: set[str] = set()
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.api = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def jobs(self) -> list[str]:
        return [event["job"]["name"] for event in self.taken]

    def __enter__(self) -> "FakeApi":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def take(self, body: bytes) -> Answer:
        """Answer one event."""
        event = json.loads(body)
        answer = self.judge(event)
        if answer is not None:
            return answer
        with self._lock:
            digest = hashlib.sha256(body).hexdigest()
            if digest not in self._hashes:
                self._hashes.add(digest)
                self.taken.append(event)
        return 201, {}

    def take_batch(self, bodies: list[bytes]) -> Answer:
        """Answer a batch as OpenLineage specifies."""
        answers = [self.take(body) for body in bodies]
        failed = [
            {"index": index, "reason": content.get("detail", ""), "retriable": status >= 500}
            for index, (status, content) in enumerate(answers)
            if status >= 400
        ]
        count = len(bodies)
        summary = {"received": count, "successful": count - len(failed), "failed": len(failed)}
        return 200, {"summary": summary, "failed_events": failed}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    api: FakeApi

    def handle_error(self, *_: object) -> None:
        """Ignore clients that were killed or timed out."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        api = self.server.api
        body = self.rfile.read(int(self.headers["Content-Length"]))
        api.posts.append(self.path)
        api.tokens.append(self.headers.get("Authorization"))
        threading.Event().wait(api.delay)
        closed = api.gate()
        if closed is not None:
            self._answer(*closed)
        elif self.path == "/api/v1/lineage":
            self._answer(*api.take(body))
        elif self.path == "/api/v1/lineage/batch" and api.has_batches:
            self._answer(*api.take_batch(body.split(b"\n")))
        else:
            self._answer(404, {"detail": "no such path"})

    def _answer(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""
