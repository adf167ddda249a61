"""What routes share: services, caller, common parameters and page cursors."""

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import Path, Query
from pydantic import AwareDatetime
from starlette.requests import Request

from floe import clock
from floe.api.errors import BadCursorError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from floe.api.bodies import Budget
    from floe.api.doors import WatchedDoor
    from floe.api.gate import Gate
    from floe.api.hosts import Hosts
    from floe.api.metrics import Metrics
    from floe.api.routes.changes import ChangeWatch
    from floe.catalog.database import Sessions
    from floe.catalog.principals import Identity


@dataclass(frozen=True)
class Services:
    """The services of an app."""

    sessions: "Sessions"
    door: "WatchedDoor"
    gate: "Gate"
    metrics: "Metrics"
    watch: "ChangeWatch"
    budget: "Budget"
    threads: "Executor"
    hosts: "Hosts"
    lake: str
    # How long events are kept; older events only add to the history and trigger nothing.
    retention: timedelta


def services_of(request: Request) -> Services:
    """Return the services of the app that received a request."""
    services: Services = request.app.state.services
    return services


def caller_of(request: Request) -> "Identity":
    """Return the caller of an authenticated request."""
    identity: Identity = request.state.identity
    return identity


MAX_ROW_ID = 2**63 - 1
DEFAULT_LIMIT, MAX_LIMIT = 50, 1000
MAX_DEPTH = 100


RowId = Annotated[int, Path(ge=1, le=MAX_ROW_ID, examples=[17])]
OptionalId = Annotated[int | None, Query(ge=1, le=MAX_ROW_ID, examples=[17])]
Limit = Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Maximum number of items per page.")]
Cursor = Annotated[
    str | None,
    Query(max_length=2000, description="`next` of the previous page; omit it for the first page."),
]
Word = Annotated[str | None, Query(max_length=300)]
FullName = Annotated[
    str,
    Query(
        min_length=1,
        max_length=600,
        description="Full name, unique name, alias or id of the dataset.",
        examples=["lake/credit.exposure"],
    ),
]
Depth = Annotated[
    int,
    Query(
        ge=0,
        le=MAX_DEPTH,
        description="Maximum number of steps from dataset to dataset.",
        examples=[5],
    ),
]
Day = Annotated[
    date | None, Query(ge=clock.FIRST_DATE, le=clock.LAST_DATE, examples=["2026-09-01"])
]
# Later or earlier times could leave the range of datetime when their zone is converted.
EARLIEST, LATEST = datetime(1900, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
Timestamp = Annotated[
    AwareDatetime | None,
    Query(
        ge=EARLIEST,
        le=LATEST,
        description="A timestamp with time zone.",
        examples=["2026-09-01T06:30:00Z"],
    ),
]


def given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the parameters that have a value."""
    return {name: value for name, value in parameters.items() if value is not None}


T = TypeVar("T")


# The position where a page ends: an id, a text, a name and an id, or a timestamp and a text.
Position = int | str | list[str | int] | tuple[datetime, str]


def write_cursor(position: Position) -> str:
    """Return the cursor of a position."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def read_id(cursor: str | None) -> int | None:
    """Return the id in a cursor."""
    return None if cursor is None else _read(cursor, _Id)


def read_text(cursor: str | None) -> str | None:
    """Return the text in a cursor."""
    return None if cursor is None else _read(cursor, _Text)


def read_name(cursor: str | None) -> tuple[str, int] | None:
    """Return the name and id in a cursor."""
    return None if cursor is None else _read(cursor, _Name)


def read_timestamp(cursor: str | None) -> tuple[datetime, str] | None:
    """Return the timestamp and text in a cursor."""
    if cursor is None:
        return None
    timestamp, text = _read(cursor, _Timestamp)
    if not EARLIEST <= timestamp <= LATEST:
        raise BadCursorError(cursor)
    return timestamp, text


_Id = msgspec.json.Decoder(Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)])
_Text = msgspec.json.Decoder(str)
_Name = msgspec.json.Decoder(tuple[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]])

_Timestamp = msgspec.json.Decoder(tuple[Annotated[datetime, msgspec.Meta(tz=True)], str])


def _read(cursor: str, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        return decoder.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise BadCursorError(cursor) from error


def cut_page(
    rows: Sequence[Any], limit: int, position_of: Callable[[Any], Position]
) -> tuple[Sequence[Any], str | None]:
    """Cut a page from `limit` + 1 rows; return it with the cursor of the next page."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], write_cursor(position_of(rows[limit - 1]))
