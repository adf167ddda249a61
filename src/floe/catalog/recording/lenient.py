"""Decode facets into typed structs. What does not fit its type is left out, with a note.

Clients in the wild send facets that do not follow their schema, and an event is worth storing
without them. So decoding never fails: an entry of a list, or an optional field, that has the wrong
type is left out and the rest counts. The event itself keeps every byte of it.
"""

import types
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import DecodeError, Struct, ValidationError

Facet = TypeVar("Facet", bound=Struct)


class Note(NamedTuple):
    """A part of a facet that was left out, and why."""

    path: str
    message: str


Notes = Callable[[Note], None]


class _UnfitError(Exception):
    """A value does not fit its type, and cannot be left out by itself."""

    def __init__(self, path: str, message: str) -> None:
        self.note = Note(path, message)
        super().__init__(f"{path}: {message}")


def _forget(_: Note) -> None:
    """Notes are only kept for people who look at an event."""


def read_facet(raw: bytes | str, facet: type[Facet], note: Notes = _forget) -> Facet:
    """Decode a facet, every field of which has a default; report what was left out."""
    try:
        fitting: Facet = _decoder(facet).decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return _read_leniently(raw, facet, note)
    return fitting


def fits(raw: bytes | str, facet: type[Struct]) -> bool:
    """Tell whether all of a facet fits its type."""
    try:
        _decoder(facet).decode(raw)
    except (DecodeError, RecursionError, UnicodeDecodeError):
        return False
    return True


@cache
def _decoder(facet: type[Facet]) -> "msgspec.json.Decoder[Facet]":
    return msgspec.json.Decoder(facet)


def _read_leniently(raw: bytes | str, facet: type[Facet], note: Notes) -> Facet:
    try:
        fitting: Facet = _fit(msgspec.json.decode(raw), facet, "", note)
    except _UnfitError as error:
        note(error.note)
    except (DecodeError, UnicodeDecodeError) as error:
        note(Note("", str(error)))
    except RecursionError:
        note(Note("", "is nested too deeply"))
    else:
        return fitting
    return facet()


def _fit(value: Any, wanted: Any, path: str, note: Notes) -> Any:
    """Convert a value to a type, without the parts that do not fit."""
    try:
        return msgspec.convert(value, wanted)
    except ValidationError as error:
        reason = str(error)
    origin, arguments = get_origin(wanted), get_args(wanted)
    if origin is Annotated:
        return _fit_plain(arguments[0], reason, value, path, note)
    if origin in (Union, types.UnionType):
        (only,) = [one for one in arguments if one is not type(None)]
        return _fit(value, only, path, note)
    if origin is list and isinstance(value, list):
        return _fit_list(value, arguments[0], path, note)
    if origin is dict and isinstance(value, dict):
        return _fit_dict(value, arguments[1], path, note)
    if isinstance(wanted, type) and issubclass(wanted, Struct) and isinstance(value, dict):
        return _fit_struct(value, wanted, path, note)
    raise _UnfitError(path, reason)


def _fit_plain(wanted: Any, reason: str, value: Any, path: str, note: Notes) -> Any:
    """Fit the parts of a value whose own length or range is limited."""
    if get_origin(wanted) is None:
        raise _UnfitError(path, reason)
    return _fit(value, wanted, path, note)


def _fit_list(values: list[Any], wanted: Any, path: str, note: Notes) -> list[Any]:
    fitting = []
    for place, value in enumerate(values):
        try:
            fitting.append(_fit(value, wanted, f"{path}[{place}]", note))
        except _UnfitError as error:
            note(error.note)
    return fitting


def _fit_dict(values: dict[str, Any], wanted: Any, path: str, note: Notes) -> dict[str, Any]:
    fitting = {}
    for key, value in values.items():
        try:
            fitting[key] = _fit(value, wanted, f"{path}.{key}", note)
        except _UnfitError as error:
            note(error.note)
    return fitting


def _fit_struct(values: dict[str, Any], wanted: type[Struct], path: str, note: Notes) -> Struct:
    fitting = {}
    for field in msgspec.structs.fields(wanted):
        place = f"{path}.{field.encode_name}"
        if field.encode_name not in values:
            if field.required:
                raise _UnfitError(place, "is missing")
            continue
        try:
            fitting[field.name] = _fit(values[field.encode_name], field.type, place, note)
        except _UnfitError as error:
            if field.required:
                raise
            note(error.note)
    return wanted(**fitting)
