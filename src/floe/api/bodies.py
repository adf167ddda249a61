"""Read request bodies: content type, encoding, and size limits."""

import zlib
from typing import TypeVar

import msgspec
from starlette.requests import Request

from floe.api.errors import BadBodyError, Fault, InvalidValueError, TooLargeError, WrongTypeError
from floe.events.ingest import DoorBusyError

T = TypeVar("T")

JSON, NDJSON = "application/json", "application/x-ndjson"
# Neither name is registered; both are in use.
OTHER_NAMES = {"application/ndjson": NDJSON}
MIB = 1024 * 1024
MOST_JSON_BYTES = MIB
# Total size of bodies being read at a time; beyond it, senders must retry.
MOST_BYTES_AT_ONCE = 512 * MIB
GZIP_WINDOW = 31


class Budget:
    """Limits the total size of request bodies in memory."""

    def __init__(self, most: int = MOST_BYTES_AT_ONCE) -> None:
        self._most = most
        self._reserved = 0

    def reserve(self, count: int) -> None:
        """Reserve bytes, or raise an error if too many are already reserved."""
        if self._reserved + count > self._most:
            raise DoorBusyError
        self._reserved += count

    def release(self, count: int) -> None:
        """Release reserved bytes."""
        self._reserved -= count


class Body:
    """The body of a request, counted in the budget while it is in use."""

    def __init__(self, request: Request, budget: Budget, most: int, what: str) -> None:
        self._request, self._budget = request, budget
        self._most, self._what = most, what
        self._reserved = 0

    async def __aenter__(self) -> bytes:
        try:
            raw = await self._receive()
            return self._unpack(raw)
        except BaseException:
            self._budget.release(self._reserved)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._budget.release(self._reserved)

    async def _receive(self) -> bytes:
        if _length(self._request) > self._most:
            raise TooLargeError(self._what, self._most)
        chunks = []
        async for chunk in self._request.stream():
            self._reserve(len(chunk))
            if self._reserved > self._most:
                raise TooLargeError(self._what, self._most)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _unpack(self, raw: bytes) -> bytes:
        encoding = self._request.headers.get("content-encoding", "identity").strip().lower()
        if encoding == "identity":
            return raw
        if encoding != "gzip":
            raise WrongTypeError(encoding, ["gzip", "no encoding"], "Content-Encoding")
        body = gunzip(raw, self._most, self._what)
        self._reserve(len(body))
        return body

    def _reserve(self, count: int) -> None:
        self._budget.reserve(count)
        self._reserved += count


def gunzip(raw: bytes, most: int, what: str) -> bytes:
    """Decompress gzip up to a limit, because a few bytes can expand to gigabytes."""
    parts, size = [], 0
    while raw:
        unpacker = zlib.decompressobj(GZIP_WINDOW)
        try:
            part = unpacker.decompress(raw, most - size + 1)
        except zlib.error as error:
            raise BadBodyError(f"The body is not gzip: {error}.") from error
        size += len(part)
        if size > most:
            raise TooLargeError(what, most)
        if not unpacker.eof:
            raise BadBodyError("The body is not gzip: it is truncated.")
        parts.append(part)
        raw = unpacker.unused_data
    return b"".join(parts)


def check_type(request: Request, *allowed: str) -> str:
    """Return the content type of the body, or raise an error if it is not allowed."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind = OTHER_NAMES.get(media_type, media_type)
    if kind not in allowed:
        raise WrongTypeError(media_type, allowed)
    return kind


async def read_json(request: Request, shape: type[T]) -> T:
    """Read a small JSON body of a known schema."""
    check_type(request, JSON)
    budget = request.app.state.services.budget
    async with Body(request, budget, MOST_JSON_BYTES, "This body") as body:
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at ")
            raise InvalidValueError([Fault(path.strip("`") or "$", message)]) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadBodyError(f"The body is not JSON: {str(error).rstrip('.')}.") from error
        except RecursionError as error:
            raise InvalidValueError([Fault("$", "is nested too deeply")]) from error


def _length(request: Request) -> int:
    given = request.headers.get("content-length", "0")
    return int(given) if given.isascii() and given.isdigit() else 0
