"""Cursors: where a page ended, as a text that clients hand back without reading it."""

import base64
import binascii
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec

from floe.api.deps import EARLIEST, LATEST
from floe.api.errors import BadCursorError

T = TypeVar("T")


# Where a page ended: a number, a text, a name and a number, or a moment and a text.
Place = int | str | list[str | int] | tuple[datetime, str]


def write_cursor(place: Place) -> str:
    """Return the cursor of a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).decode().rstrip("=")


def read_number(cursor: str | None) -> int | None:
    """Return the number that a cursor stands for."""
    return None if cursor is None else _read(cursor, _Number)


def read_text(cursor: str | None) -> str | None:
    """Return the text that a cursor stands for."""
    return None if cursor is None else _read(cursor, _Text)


def read_name(cursor: str | None) -> tuple[str, int] | None:
    """Return the name and number that a cursor stands for."""
    return None if cursor is None else _read(cursor, _Name)


def read_moment(cursor: str | None) -> tuple[datetime, str] | None:
    """Return the moment and the text that a cursor stands for."""
    if cursor is None:
        return None
    moment, text = _read(cursor, _Moment)
    if not EARLIEST <= moment <= LATEST:
        raise BadCursorError(cursor)
    return moment, text


_Number = msgspec.json.Decoder(Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)])
_Text = msgspec.json.Decoder(str)
_Name = msgspec.json.Decoder(tuple[str, Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]])

_Moment = msgspec.json.Decoder(tuple[Annotated[datetime, msgspec.Meta(tz=True)], str])


def _read(cursor: str, decoder: "msgspec.json.Decoder[T]") -> T:
    try:
        return decoder.decode(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError, msgspec.DecodeError) as error:
        raise BadCursorError(cursor) from error


def cut_page(
    rows: Sequence[Any], limit: int, place_of: Callable[[Any], Place]
) -> tuple[Sequence[Any], str | None]:
    """Cut a page out of rows that were read one too many; return it and the cursor after it."""
    if len(rows) <= limit:
        return rows, None
    return rows[:limit], write_cursor(place_of(rows[limit - 1]))
