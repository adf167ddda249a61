"""Answers: values as JSON, single resources with an ETag that saves sending them again."""

import hashlib
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

JSON = "application/json"
ETAG_BYTES = 12

_encode = msgspec.json.Encoder().encode


def reply(value: Any, status: int = 200) -> Response:
    """Answer with a value."""
    return Response(_encode(value), status, media_type=JSON)


def reply_single(request: Request, value: Any) -> Response:
    """Answer with a resource, or with 304 where the caller has it as it is."""
    body = _encode(value)
    etag = _etag(body)
    if _holds(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(body, headers={"ETag": etag}, media_type=JSON)


def _etag(body: bytes) -> str:
    # Weak, because the same resource may go out packed or plain.
    return f'W/"{hashlib.blake2b(body, digest_size=ETAG_BYTES).hexdigest()}"'


def _holds(given: str, etag: str) -> bool:
    return given.strip() == "*" or etag in (one.strip() for one in given.split(","))
