"""Read what a request carries: its type, its encoding, and never more than is allowed."""

import zlib
from typing import TypeVar

import msgspec
from starlette.requests import Request

from floe.api.errors import BadBodyError, Fault, TooLargeError, UnfitValueError, WrongTypeError
from floe.events.ingest import DoorBusyError

T = TypeVar("T")

JSON, NDJSON = "application/json", "application/x-ndjson"
# Neither name is registered, and both are in use.
OTHER_NAMES = {"application/ndjson": NDJSON}
MIB = 1024 * 1024
MOST_JSON_BYTES = MIB
# All bodies that are being read at one time. Beyond it senders wait, before memory grows.
MOST_BYTES_AT_ONCE = 512 * MIB
GZIP_WINDOW = 31


class Budget:
    """How many bytes of bodies are in memory."""

    def __init__(self, most: int = MOST_BYTES_AT_ONCE) -> None:
        self._most = most
        self._taken = 0

    def take(self, count: int) -> None:
        """Make room for bytes, or raise an error when too many are there already."""
        if self._taken + count > self._most:
            raise DoorBusyError
        self._taken += count

    def give_back(self, count: int) -> None:
        """Say that bytes are gone."""
        self._taken -= count


class Body:
    """The bytes of a request, counted in the budget for as long as they are needed."""

    def __init__(self, request: Request, budget: Budget, most: int, what: str) -> None:
        self._request, self._budget = request, budget
        self._most, self._what = most, what
        self._taken = 0

    async def __aenter__(self) -> bytes:
        try:
            raw = await self._receive()
            return self._unpack(raw)
        except BaseException:
            self._budget.give_back(self._taken)
            raise

    async def __aexit__(self, *_: object) -> None:
        self._budget.give_back(self._taken)

    async def _receive(self) -> bytes:
        if _length(self._request) > self._most:
            raise TooLargeError(self._what, self._most)
        chunks = []
        async for chunk in self._request.stream():
            self._take(len(chunk))
            if self._taken > self._most:
                raise TooLargeError(self._what, self._most)
            chunks.append(chunk)
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    def _unpack(self, raw: bytes) -> bytes:
        encoding = self._request.headers.get("content-encoding", "identity").strip().lower()
        if encoding == "identity":
            return raw
        if encoding != "gzip":
            raise WrongTypeError(encoding, ["it as it is", "as gzip"])
        body = gunzip(raw, self._most, self._what)
        self._take(len(body))
        return body

    def _take(self, count: int) -> None:
        self._budget.take(count)
        self._taken += count


def gunzip(raw: bytes, most: int, what: str) -> bytes:
    """Unpack gzip, and stop where it gets larger than allowed: a few bytes can hold gigabytes."""
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
            raise BadBodyError("The body is not gzip: it ends too early.")
        parts.append(part)
        raw = unpacker.unused_data
    return b"".join(parts)


def check_type(request: Request, *allowed: str) -> str:
    """Return the type of the body, or raise an error when it is none of those taken here."""
    found = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    kind = OTHER_NAMES.get(found, found)
    if kind not in allowed:
        raise WrongTypeError(found, allowed)
    return kind


async def read_json(request: Request, shape: type[T]) -> T:
    """Read a small JSON body of a known shape."""
    check_type(request, JSON)
    budget = request.app.state.services.budget
    async with Body(request, budget, MOST_JSON_BYTES, "This body") as body:
        try:
            return msgspec.json.decode(body, type=shape)
        except msgspec.ValidationError as error:
            message, _, path = str(error).partition(" - at ")
            raise UnfitValueError([Fault(path.strip("`") or "$", message)]) from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise BadBodyError(f"The body is not JSON: {str(error).rstrip('.')}.") from error
        except RecursionError as error:
            raise UnfitValueError([Fault("$", "is nested too deeply")]) from error


def _length(request: Request) -> int:
    given = request.headers.get("content-length", "0")
    return int(given) if given.isascii() and given.isdigit() else 0
