"""How the launcher speaks with the process that starts runs: one question, one answer, JSON."""

import json
import os
import socket
from pathlib import Path
from typing import Any

LONGEST = 4_000_000
"""No question is longer."""
ANSWER_SECONDS = 120.0
"""A project that has changed is loaded again before the answer."""


class NotReachedError(Exception):
    """Nobody took the question: nothing has happened."""


class NotAnsweredError(Exception):
    """The question was sent, and no answer came."""


def listen(path: Path) -> socket.socket:
    """Listen at a path that only its owner can open."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    listener.listen(128)
    return listener


def ask(path: str | None, question: dict[str, Any], seconds: float = ANSWER_SECONDS) -> Any:
    """Send a question and return the answer."""
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(seconds)
        try:
            line.connect(path or "")
        except OSError as error:
            raise NotReachedError(str(error)) from error
        try:
            line.sendall(json.dumps(question).encode() + b"\n")
            return json.loads(receive(line))
        except (OSError, ValueError) as error:
            raise NotAnsweredError(str(error) or type(error).__name__) from error


def receive(line: socket.socket) -> bytes:
    """Read up to the end of a line."""
    content = b""
    while not content.endswith(b"\n") and len(content) < LONGEST:
        part = line.recv(65536)
        if not part:
            break
        content += part
    return content
