"""Notifications by HTTP POST of JSON. Standard library only."""

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import SplitResult, urlsplit
from uuid import uuid4

from floe import __version__, clock
from floe.notify.messages import Masking, Message, NotDeliveredError
from floe.spec.platform import WebhookChannel

PAUSES = (0.2, 1.0)
"""Seconds to wait before the second and the third attempt."""
_BUSY = frozenset({408, 425, 429})
_WHERE = "The webhook"


class _TryAgainError(NotDeliveredError):
    """The request failed and may succeed if it is sent again."""


@dataclass(frozen=True)
class _Post:
    """A request that can be sent several times."""

    address: SplitResult
    headers: dict[str, str]
    body: bytes
    timeout: float


def deliver(channel: WebhookChannel, message: Message, masking: Masking) -> None:
    """Post the message. All attempts have the same id, to detect duplicates."""
    post = _prepare(channel, message, masking)
    for pause in PAUSES:
        try:
            _send(post, masking)
        except _TryAgainError:
            time.sleep(pause)
        else:
            return
    _send(post, masking)


def _prepare(channel: WebhookChannel, message: Message, masking: Masking) -> _Post:
    headers = {"Content-Type": "application/json", "User-Agent": f"floe/{__version__}"}
    for name, value in channel.headers.items():
        headers[name] = _sendable(name, masking.reveal(value))
    body = {
        "id": str(uuid4()),
        "sent_at": clock.now().isoformat(),
        "severity": message.severity,
        "title": message.headline,
        "body": message.body,
        "links": dict(message.links),
    }
    address = _address(masking.reveal(channel.url))
    return _Post(address, headers, json.dumps(body).encode(), channel.timeout.total_seconds())


def _sendable(name: str, value: str) -> str:
    # Checked here, because the error of http.client would contain the value.
    if not (value.isascii() and value.isprintable()):
        raise NotDeliveredError(_WHERE, f"the header {name} has invalid characters")
    return value


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url.strip())
        usable = address.scheme in ("http", "https") and address.hostname and address.port != 0
    except ValueError:
        # The error repeats the URL, which may contain a secret.
        usable = False
    if not usable or not url.strip().isprintable():
        raise NotDeliveredError(_WHERE, "its url must be a URL such as https://example.com/hook")
    return address


def _send(post: _Post, masking: Masking) -> None:
    connection = _connect(post)
    path = f"{post.address.path or '/'}{'?' if post.address.query else ''}{post.address.query}"
    try:
        connection.request("POST", path, post.body, post.headers)
        status = connection.getresponse().status
    except (OSError, HTTPException, ValueError) as error:
        words = masking.mask(getattr(error, "strerror", None) or str(error))
        reason = f"it does not respond ({words or type(error).__name__})"
        raise _TryAgainError(_WHERE, reason) from None
    finally:
        connection.close()
    if not 200 <= status < 300:
        kind = _TryAgainError if status >= 500 or status in _BUSY else NotDeliveredError
        raise kind(_WHERE, f"it responded {_shown(status)}")


def _connect(post: _Post) -> HTTPConnection:
    kind = HTTPSConnection if post.address.scheme == "https" else HTTPConnection
    return kind(str(post.address.hostname), post.address.port, timeout=post.timeout)


def _shown(status: int) -> str:
    known = status in {member.value for member in HTTPStatus}
    return f"{status} {HTTPStatus(status).phrase}" if known else str(status)
