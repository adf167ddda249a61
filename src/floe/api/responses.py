"""Responses: JSON values, ETags, and errors as problem documents.

Errors follow RFC 9457; the table STATUSES maps error classes to statuses.
"""

import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from floe.api.errors import (
    AddressBlockedError,
    BadBodyError,
    BadCursorError,
    CrossOriginError,
    Fault,
    ForbiddenError,
    ForeignSiteError,
    InvalidValueError,
    LoginRefusedError,
    NoSessionError,
    TooLargeError,
    UnauthorizedError,
    UnknownHostError,
    WrongTypeError,
)
from floe.api.process_door import WriterEndedError
from floe.catalog import NotFoundError
from floe.catalog.database import CatalogOutageError, CatalogUnreachableError
from floe.catalog.errors import (
    AmbiguousDatasetError,
    AmbiguousProcessError,
    DatasetExistsError,
    WrongStateError,
)
from floe.catalog.migrate import CatalogOutdatedError, CatalogTooNewError
from floe.catalog.recording import (
    CatalogUnavailableError,
    EventFailedError,
    UnstorableClaimError,
)
from floe.catalog.search import CursorError
from floe.client import BadReportError
from floe.errors import FloeError
from floe.events.errors import InvalidEventError, MalformedEventError
from floe.events.ingest import DoorBusyError, DoorClosedError

JSON = "application/json"
ETAG_BYTES = 12

_encode = msgspec.json.Encoder().encode


def reply(value: Any, status: int = 200) -> Response:
    """Return a response with a JSON value."""
    return Response(_encode(value), status, media_type=JSON)


def reply_single(request: Request, value: Any) -> Response:
    """Return a response with a resource, or 304 if the caller has the current state."""
    body = _encode(value)
    etag = _etag(body)
    if _holds(request.headers.get("if-none-match", ""), etag):
        return Response(status_code=304, headers={"ETag": etag})
    return Response(body, headers={"ETag": etag}, media_type=JSON)


def _etag(body: bytes) -> str:
    # Weak, because the same resource may be sent compressed or not.
    return f'W/"{hashlib.blake2b(body, digest_size=ETAG_BYTES).hexdigest()}"'


def _holds(given: str, etag: str) -> bool:
    return given.strip() == "*" or etag in (tag.strip() for tag in given.split(","))


MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
# Used in metrics only; HTTP has no status for this, but nginx uses 499 too.
CLIENT_DISCONNECTED = 499

# A class that is not listed has the status of its nearest base class.
STATUSES: Mapping[type[FloeError], int] = {
    FloeError: 400,
    BadBodyError: 400,
    BadCursorError: 400,
    CursorError: 400,
    MalformedEventError: 400,
    UnauthorizedError: 401,
    LoginRefusedError: 401,
    CrossOriginError: 403,
    ForbiddenError: 403,
    ForeignSiteError: 403,
    NotFoundError: 404,
    AmbiguousDatasetError: 409,
    AmbiguousProcessError: 409,
    DatasetExistsError: 409,
    NoSessionError: 409,
    WrongStateError: 409,
    TooLargeError: 413,
    WrongTypeError: 415,
    UnknownHostError: 421,
    InvalidEventError: 422,
    UnstorableClaimError: 422,
    InvalidValueError: 422,
    BadReportError: 422,
    AddressBlockedError: 429,
    EventFailedError: 500,
    CatalogOutageError: 503,
    CatalogOutdatedError: 503,
    CatalogTooNewError: 503,
    CatalogUnavailableError: 503,
    CatalogUnreachableError: 503,
    DoorBusyError: 503,
    DoorClosedError: 503,
    WriterEndedError: 503,
}


class Problem(msgspec.Struct, omit_defaults=True):
    """An error response (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


def status_of(error: FloeError) -> int:
    """Return the HTTP status of an error."""
    return next(STATUSES[base] for base in type(error).__mro__ if base in STATUSES)


def problem_type(status: int) -> str:
    """Return the problem type URN of a status."""
    return f"urn:floe:problem:{HTTPStatus(status).phrase.lower().replace(' ', '-')}"


def problem_response(
    status: int,
    detail: str,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem document."""
    problem = Problem(problem_type(status), HTTPStatus(status).phrase, status, detail, list(faults))
    return Response(
        msgspec.json.encode(problem), status, {**(headers or {})}, media_type=MEDIA_TYPE
    )


def answer_error(error: FloeError) -> Response:
    """Return the problem document of a FloeError."""
    status = status_of(error)
    return problem_response(status, str(error), _faults(error), _headers(error, status))


def _faults(error: FloeError) -> Sequence[Fault]:
    if isinstance(error, InvalidEventError):
        return [Fault(reason.path, reason.message) for reason in error.reasons]
    return error.faults if isinstance(error, InvalidValueError) else ()


def _headers(error: FloeError, status: int) -> dict[str, str]:
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": 'Bearer realm="floe"'}
    if isinstance(error, AddressBlockedError):
        return {"Retry-After": str(error.retry_after)}
    return {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


async def handle_floe_error(_request: Request, error: Exception) -> Response:
    """Handle a FloeError."""
    assert isinstance(error, FloeError)
    return answer_error(error)


async def handle_http_error(_request: Request, error: Exception) -> Response:
    """Handle an unknown path or method."""
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, str(error.detail), headers=error.headers)


async def handle_invalid_request(_request: Request, error: Exception) -> Response:
    """Handle invalid parameters."""
    assert isinstance(error, RequestValidationError)
    faults = [
        Fault(".".join(str(part) for part in fault["loc"]), fault["msg"])
        for fault in error.errors()
    ]
    return answer_error(InvalidValueError(faults))


async def handle_disconnect(_request: Request, error: Exception) -> Response:
    """Count a client that disconnected. Nobody receives this response."""
    assert isinstance(error, ClientDisconnect)
    return Response(status_code=CLIENT_DISCONNECTED)


async def handle_crash(_request: Request, _error: Exception) -> Response:
    """Handle an unexpected error. The details go to the log, not to the caller."""
    return problem_response(500, "Internal server error. See the server's log for details.")


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]

HANDLERS: dict[int | type[Exception], Handler] = {
    FloeError: handle_floe_error,
    HTTPException: handle_http_error,
    RequestValidationError: handle_invalid_request,
    ClientDisconnect: handle_disconnect,
    Exception: handle_crash,
}
