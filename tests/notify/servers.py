"""A web server and a mail server on loopback that record what they receive."""

import json
import socketserver
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string
from email.message import Message as Letter
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any


@dataclass
class Posted:
    """A request that a web server received."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Hook:
    """A web server that sends the given responses, then 200."""

    answers: list[int] = field(default_factory=list)
    posted: list[Posted] = field(default_factory=list)
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def web_server(*answers: int) -> Iterator[Hook]:
    """Start a web server that responds with these status codes in turn."""
    hook = Hook(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.posted.append(Posted(self.path, dict(self.headers), json.loads(body)))
            self.send_response(hook.answers.pop(0) if hook.answers else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Log nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hook.port = server.server_port
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield hook
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Mailbox:
    """A mail server that records logins and messages."""

    refuses: frozenset[str] = frozenset()
    refuses_login: bool = False
    certificate: tuple[Path, Path] | None = None
    logins: list[str] = field(default_factory=list)
    letters: list[Letter] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    port: int = 0


class _Session(socketserver.StreamRequestHandler):
    """An SMTP connection with the commands that floe sends."""

    box: Mailbox

    def handle(self) -> None:
        self.is_encrypted = False
        self._say("220 ready")
        while line := self.rfile.readline().decode().rstrip("\r\n"):
            word = line.split()[0].upper()
            getattr(self, f"_{word.lower()}", self._fine)(line)
            if word == "QUIT":
                return

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def _say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())

    def _fine(self, line: str) -> None:
        self._say("250 fine")

    def _quit(self, line: str) -> None:
        self._say("221 bye")

    def _ehlo(self, line: str) -> None:
        offers = ["250-AUTH PLAIN"]
        offers += ["250-STARTTLS"] if self.box.certificate else []
        self._say("250-here", *offers, "250 HELP")

    def _starttls(self, line: str) -> None:
        self._say("220 go on")
        assert self.box.certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.box.certificate)
        try:
            self.request = context.wrap_socket(self.request, server_side=True)
        except OSError:
            self.rfile.close()
            raise ConnectionAbortedError from None
        self.rfile = self.request.makefile("rb")
        self.wfile = self.request.makefile("wb", buffering=0)
        self.is_encrypted = True

    def _auth(self, line: str) -> None:
        self.box.logins.append(line)
        self._say(f"535 no: {line}" if self.box.refuses_login else "235 welcome")

    def _rcpt(self, line: str) -> None:
        known = not any(address in line for address in self.box.refuses)
        self._say("250 fine" if known else "550 nobody of that name")

    def _data(self, line: str) -> None:
        self._say("354 go on")
        lines = []
        while (text := self.rfile.readline().decode()) != ".\r\n":
            lines.append(text)
        self.box.letters.append(message_from_string("".join(lines), policy=default))
        self.box.encrypted.append(self.is_encrypted)
        self._say("250 taken")


class _MailServer(socketserver.ThreadingTCPServer):
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing: some tests close the connection on purpose."""


@contextmanager
def mail_server(box: Mailbox) -> Iterator[Mailbox]:
    """Start a mail server that stores messages in the mailbox."""
    handler = type("Session", (_Session,), {"box": box})
    with _MailServer(("127.0.0.1", 0), handler) as server:
        box.port = server.server_address[1]
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()
