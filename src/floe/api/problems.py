"""Problems: every error has one shape, that of RFC 9457, and one table says its status."""

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
    LoginRefusedError,
    NoSessionError,
    TooLargeError,
    UnauthorizedError,
    UnfitValueError,
    UnknownHostError,
    WrongTypeError,
)
from floe.api.process_door import WriterEndedError
from floe.catalog import NotFoundError
from floe.catalog.database import CatalogUnreachableError
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
from floe.catalog.sessions import CatalogAwayError
from floe.client.errors import BadReportError
from floe.errors import FloeError
from floe.events.errors import InvalidEventError, MalformedEventError
from floe.events.ingest import DoorBusyError, DoorClosedError

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 2
# What others count too when nobody is left to be answered. HTTP has no number for it.
HUNG_UP = 499

# A class that is not here has the status of its nearest base.
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
    UnfitValueError: 422,
    BadReportError: 422,
    AddressBlockedError: 429,
    EventFailedError: 500,
    CatalogAwayError: 503,
    CatalogOutdatedError: 503,
    CatalogTooNewError: 503,
    CatalogUnavailableError: 503,
    CatalogUnreachableError: 503,
    DoorBusyError: 503,
    DoorClosedError: 503,
    WriterEndedError: 503,
}


class Problem(msgspec.Struct, omit_defaults=True):
    """What went wrong with a request (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[Fault] = []


def status_of(error: FloeError) -> int:
    """Return the status that an error is answered with."""
    return next(STATUSES[base] for base in type(error).__mro__ if base in STATUSES)


def problem_type(status: int) -> str:
    """Name a kind of problem by what HTTP calls it."""
    return f"urn:floe:problem:{HTTPStatus(status).phrase.lower().replace(' ', '-')}"


def problem_response(
    status: int,
    detail: str,
    faults: Sequence[Fault] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with a problem."""
    problem = Problem(problem_type(status), HTTPStatus(status).phrase, status, detail, list(faults))
    return Response(
        msgspec.json.encode(problem), status, {**(headers or {})}, media_type=MEDIA_TYPE
    )


def answer_error(error: FloeError) -> Response:
    """Answer an error of ours: its words, and the status of its class."""
    status = status_of(error)
    return problem_response(status, str(error), _faults(error), _headers(error, status))


def _faults(error: FloeError) -> Sequence[Fault]:
    if isinstance(error, InvalidEventError):
        return [Fault(reason.path, reason.message) for reason in error.reasons]
    return error.faults if isinstance(error, UnfitValueError) else ()


def _headers(error: FloeError, status: int) -> dict[str, str]:
    if isinstance(error, UnauthorizedError):
        return {"WWW-Authenticate": 'Bearer realm="floe"'}
    if isinstance(error, AddressBlockedError):
        return {"Retry-After": str(error.retry_after)}
    return {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


async def handle_floe_error(_request: Request, error: Exception) -> Response:
    """Answer an error that floe raised on purpose."""
    assert isinstance(error, FloeError)
    return answer_error(error)


async def handle_http_error(_request: Request, error: Exception) -> Response:
    """Answer what the router raises: no such path, no such method."""
    assert isinstance(error, HTTPException)
    return problem_response(error.status_code, str(error.detail), headers=error.headers)


async def handle_invalid_request(_request: Request, error: Exception) -> Response:
    """Answer parameters that do not fit, each with its place."""
    assert isinstance(error, RequestValidationError)
    faults = [
        Fault(".".join(str(part) for part in one["loc"]), one["msg"]) for one in error.errors()
    ]
    return answer_error(UnfitValueError(faults))


async def handle_hang_up(_request: Request, error: Exception) -> Response:
    """Count one who went away before all was said. Nobody reads this answer."""
    assert isinstance(error, ClientDisconnect)
    return Response(status_code=HUNG_UP)


async def handle_crash(_request: Request, _error: Exception) -> Response:
    """Answer a mistake of ours. What it was goes to the log, not to the caller."""
    return problem_response(500, "The server made a mistake. Its log says which.")


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]

HANDLERS: dict[int | type[Exception], Handler] = {
    FloeError: handle_floe_error,
    HTTPException: handle_http_error,
    RequestValidationError: handle_invalid_request,
    ClientDisconnect: handle_hang_up,
    Exception: handle_crash,
}
