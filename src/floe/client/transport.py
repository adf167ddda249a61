"""Post messages to the API, and read from its answer what has to become of them."""

import json
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from floe import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from http.client import HTTPConnection
    from urllib.parse import SplitResult

ONE, MANY = "/api/v1/lineage", "/api/v1/lineage/batch"
LONGEST_ANSWER = 1024 * 1024
LONGEST_REASON = 2000
# Not the message's fault: the caller is unknown, the address is wrong, or the server is busy.
KEPT = frozenset({401, 403, 404, 405, 407, 408, 421, 425, 429})


class Verdict(Enum):
    """What has to become of a message."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


class Answer(NamedTuple):
    """What the server said to a message, or why it could not be asked."""

    verdict: Verdict
    reason: str = ""
    # The server did not even answer: asking again at once would only make the job wait.
    silent: bool = False


class Transport:
    """A connection to the API, opened when it is needed and kept while messages flow."""

    def __init__(self, url: str, token: str | None, timeout: float) -> None:
        self._url = url
        self._token = token
        self._timeout = timeout
        self._connection: HTTPConnection | None = None
        self._prefix = ""
        self._takes_batches = True

    def post(self, bodies: "Sequence[bytes]") -> list[Answer]:
        """Send messages in their order; return the answers up to the first that says later.

        Many go as a batch. Where that is not understood, each goes by itself and gets its own
        answer: the server knows those it has.
        """
        many = len(bodies) > 1 and self._takes_batches
        answers = self._post_batch(bodies) if many else None
        return _up_to_later(answers or map(self.post_one, bodies))

    def post_one(self, body: bytes) -> Answer:
        """Send one message."""
        asked = self._ask(ONE, body, "application/json")
        return asked if isinstance(asked, Answer) else self._judge(*asked)

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post_batch(self, bodies: "Sequence[bytes]") -> list[Answer] | None:
        asked = self._ask(MANY, b"\n".join(bodies), "application/x-ndjson")
        if isinstance(asked, Answer):
            return [asked]
        status, said = asked
        if 200 <= status < 300:
            return _batch_answers(said, len(bodies))
        if status in (404, 405, 415):
            self._takes_batches = False
            return None
        judged = self._judge(status, said)
        return [judged] if judged.verdict is Verdict.LATER else None

    def _judge(self, status: int, said: bytes) -> Answer:
        if 200 <= status < 300:
            return Answer(Verdict.TAKEN)
        if status in (401, 403):
            return Answer(Verdict.LATER, self._stranger(status))
        reason = f"{self._url} answers {status}: {_reason(said)}".rstrip(": ")
        refused = 400 <= status < 500 and status not in KEPT
        return Answer(Verdict.REFUSED if refused else Verdict.LATER, reason)

    def _stranger(self, status: int) -> str:
        trouble = "does not accept the token" if self._token else "wants a token"
        return f"{self._url} {trouble} ({status}). Set FLOE_API_TOKEN to one with the INGEST role."

    def _ask(self, path: str, body: bytes, content_type: str) -> tuple[int, bytes] | Answer:
        from http.client import HTTPException

        fresh = self._connection is None
        try:
            return self._exchange(path, body, content_type)
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            timed_out = isinstance(error, TimeoutError)
            if not fresh and not timed_out:
                # A kept connection may have been closed by the other side meanwhile.
                return self._ask(path, body, content_type)
            return Answer(Verdict.LATER, f"{self._url} does not answer: {error}", silent=timed_out)

    def _exchange(self, path: str, body: bytes, content_type: str) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {"Content-Type": content_type, "User-Agent": f"floe-client/{__version__}"}
        if self._token:
            headers["Authorization"] = f"Bearer {_sendable(self._token)}"
        self._connection.request("POST", f"{self._prefix}{path}", body, headers)
        response = self._connection.getresponse()
        said = response.read(LONGEST_ANSWER)
        if response.will_close or not response.isclosed():
            self.close()
        return response.status, said

    def _connect(self) -> "HTTPConnection":
        # Imported here: a job that only imports floe.client need not pay for it.
        from http.client import HTTPConnection, HTTPSConnection
        from urllib.parse import urlsplit

        address = urlsplit(self._url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("FLOE_API_URL must be a URL such as https://floe.example.com")
        self._prefix = address.path.rstrip("/")
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        return kind(address.hostname, _port(address), timeout=self._timeout)


def _sendable(token: str) -> str:
    # Checked here, because http.client would show the whole token in its complaint.
    if not (token.isascii() and token.isprintable()):
        raise ValueError("FLOE_API_TOKEN holds characters that no token has")
    return token


def _port(address: "SplitResult") -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def _up_to_later(answers: "Iterable[Answer]") -> list[Answer]:
    """Gather answers until one says later: what follows must not overtake that message."""
    found = []
    for answer in answers:
        found.append(answer)
        if answer.verdict is Verdict.LATER:
            break
    return found


def _batch_answers(said: bytes, count: int) -> list[Answer] | None:
    """The answers to the events of a batch, or None if it is not said which failed."""
    answer = _object(said)
    summary, listed = answer.get("summary"), answer.get("failed_events")
    counts = summary if isinstance(summary, dict) else {}
    failed = counts.get("failed", 0)
    if counts.get("received", count) != count:
        return None
    if not failed:
        return [Answer(Verdict.TAKEN)] * count
    wrong = {
        one.get("index"): Answer(
            Verdict.LATER if one.get("retriable") else Verdict.REFUSED,
            str(one.get("reason") or "")[:LONGEST_REASON],
        )
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, dict)
    }
    if len(wrong) != failed:
        return None
    return [wrong.get(place, Answer(Verdict.TAKEN)) for place in range(count)]


def _reason(said: bytes) -> str:
    """The reason out of problem details, or the beginning of whatever was said."""
    answer = _object(said)
    reasons = answer.get("reasons") or answer.get("errors") or answer.get("detail")
    text = reasons if isinstance(reasons, str) else json.dumps(reasons) if reasons else ""
    return (text or said.decode("utf-8", "replace").strip())[:LONGEST_REASON]


def _object(said: bytes) -> dict[str, object]:
    try:
        value = json.loads(said)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
