"""Post messages to the API and interpret its answers."""

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from floe import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from http.client import HTTPConnection
    from urllib.parse import SplitResult

EVENT_PATH, BATCH_PATH = "/api/v1/lineage", "/api/v1/lineage/batch"
LONGEST_ANSWER = 1024 * 1024
LONGEST_REASON = 2000
# Not caused by the message: bad token, wrong address or busy server. Try again later.
RETRIABLE = frozenset({401, 403, 404, 405, 407, 408, 421, 425, 429})


class Verdict(Enum):
    """What to do with a message."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


class Answer(NamedTuple):
    """The server's answer to a message, or why it did not answer."""

    verdict: Verdict
    reason: str = ""
    # The request timed out: retrying at once would only make the job wait.
    timed_out: bool = False


class Transport:
    """A connection to the API, opened on first use and reused."""

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout: float,
        headers: "Mapping[str, str] | None" = None,
    ) -> None:
        self._url = url
        self._token = token
        self._headers = headers or {}
        self._timeout = timeout
        self._connection: HTTPConnection | None = None
        self._prefix = ""
        self._takes_batches = True

    def post(self, bodies: "Sequence[bytes]") -> list[Answer]:
        """Send messages in order; return the answers up to the first LATER.

        Several are sent as a batch. If the server does not support batches, each is sent alone;
        the server recognises those it already has.
        """
        use_batch = len(bodies) > 1 and self._takes_batches
        answers = self._post_batch(bodies) if use_batch else None
        return _up_to_later(answers or map(self.post_one, bodies))

    def post_one(self, body: bytes) -> Answer:
        response = self._request(EVENT_PATH, body, "application/json")
        return response if isinstance(response, Answer) else self._judge(*response)

    def get(self, path: str) -> "dict[str, Any] | None":
        """Return a JSON object from the API; None if it is down or refuses the token."""
        from http.client import HTTPException

        try:
            status, content = self._exchange("GET", path, None, "application/json")
            answer = json.loads(content) if status == 200 else None
        except (OSError, HTTPException, ValueError):
            self.close()
            return None
        return answer if isinstance(answer, dict) else None

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _post_batch(self, bodies: "Sequence[bytes]") -> list[Answer] | None:
        response = self._request(BATCH_PATH, b"\n".join(bodies), "application/x-ndjson")
        if isinstance(response, Answer):
            return [response]
        status, content = response
        if 200 <= status < 300:
            return _batch_answers(content, len(bodies))
        if status in (404, 405, 415):
            self._takes_batches = False
            return None
        answer = self._judge(status, content)
        return [answer] if answer.verdict is Verdict.LATER else None

    def _judge(self, status: int, content: bytes) -> Answer:
        if 200 <= status < 300:
            return Answer(Verdict.TAKEN)
        if status in (401, 403):
            return Answer(Verdict.LATER, self._describe_bad_token(status))
        reason = f"{self._url} answered {status}: {_reason(content)}".rstrip(": ")
        refused = 400 <= status < 500 and status not in RETRIABLE
        return Answer(Verdict.REFUSED if refused else Verdict.LATER, reason)

    def _describe_bad_token(self, status: int) -> str:
        if self._headers:
            return f"{self._url} rejected the credentials in the headers ({status})."
        problem = "rejected the token" if self._token else "requires a token"
        return f"{self._url} {problem} ({status}). Set FLOE_API_TOKEN to a token with role INGEST."

    def _request(self, path: str, body: bytes, content_type: str) -> tuple[int, bytes] | Answer:
        from http.client import HTTPException

        fresh = self._connection is None
        try:
            return self._exchange("POST", path, body, content_type)
        except (OSError, HTTPException, ValueError) as error:
            self.close()
            timed_out = isinstance(error, TimeoutError)
            if not fresh and not timed_out:
                # The server may have closed the idle connection.
                return self._request(path, body, content_type)
            reason = f"cannot reach {self._url}: {error}"
            return Answer(Verdict.LATER, reason, timed_out=timed_out)

    def _exchange(
        self, method: str, path: str, body: bytes | None, content_type: str
    ) -> tuple[int, bytes]:
        if self._connection is None:
            self._connection = self._connect()
        headers = {"Content-Type": content_type, "User-Agent": f"floe-client/{__version__}"}
        if self._token:
            headers["Authorization"] = f"Bearer {_valid(self._token, 'FLOE_API_TOKEN')}"
        for name, value in self._headers.items():
            headers[name] = _valid(value, f"the header {name}")
        self._connection.request(method, f"{self._prefix}{path}", body, headers)
        response = self._connection.getresponse()
        content = response.read(LONGEST_ANSWER)
        if response.will_close or not response.isclosed():
            self.close()
        return response.status, content

    def _connect(self) -> "HTTPConnection":
        # Imported here, because importing floe.client must stay quick.
        from http.client import HTTPConnection, HTTPSConnection
        from urllib.parse import urlsplit

        address = urlsplit(self._url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise ValueError("FLOE_API_URL must be a URL such as https://floe.example.com")
        self._prefix = address.path.rstrip("/")
        kind = HTTPSConnection if address.scheme == "https" else HTTPConnection
        return kind(address.hostname, _port(address), timeout=self._timeout)


def _valid(value: str, name: str) -> str:
    # Checked here, because http.client would put the whole value into its error.
    if not (value.isascii() and value.isprintable()):
        raise ValueError(f"{name} contains invalid characters")
    return value


def _port(address: "SplitResult") -> int:
    return address.port or (443 if address.scheme == "https" else 80)


def _up_to_later(answers: "Iterable[Answer]") -> list[Answer]:
    """Collect answers up to the first LATER, so that no message overtakes another."""
    collected = []
    for answer in answers:
        collected.append(answer)
        if answer.verdict is Verdict.LATER:
            break
    return collected


def _batch_answers(content: bytes, count: int) -> list[Answer] | None:
    """Return an answer per event of a batch, or None if failures are not listed."""
    answer = _parse_object(content)
    summary, listed = answer.get("summary"), answer.get("failed_events")
    counts = summary if isinstance(summary, dict) else {}
    failed = counts.get("failed", 0)
    if counts.get("received", count) != count:
        return None
    if not failed:
        return [Answer(Verdict.TAKEN)] * count
    failures = {
        event.get("index"): Answer(
            Verdict.LATER if event.get("retriable") else Verdict.REFUSED,
            str(event.get("reason") or "")[:LONGEST_REASON],
        )
        for event in (listed if isinstance(listed, list) else ())
        if isinstance(event, dict)
    }
    if len(failures) != failed:
        return None
    return [failures.get(index, Answer(Verdict.TAKEN)) for index in range(count)]


def _reason(content: bytes) -> str:
    """Return the reason from problem details, or the start of the response body."""
    answer = _parse_object(content)
    reasons = answer.get("reasons") or answer.get("errors") or answer.get("detail")
    text = reasons if isinstance(reasons, str) else json.dumps(reasons) if reasons else ""
    return (text or content.decode("utf-8", "replace").strip())[:LONGEST_REASON]


def _parse_object(content: bytes) -> dict[str, object]:
    try:
        value = json.loads(content)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
