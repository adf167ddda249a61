"""Convert pydantic's errors to problems in plain words."""

import re
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, Tag
from pydantic_core import ErrorDetails

from floe.spec.base import SpecModel
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import choices, nearest, suggest

KEY = "[key]"
"""What pydantic appends if the key of a mapping, not its value, is invalid."""
_QUOTED = re.compile(r"'([^']*)'")
_KINDS = {
    "int": ("a whole number", "Write it as 10."),
    "float": ("a number", "Write it as 0.5."),
    "bool": ("true or false", "Write true or false."),
    "string": ("text", "Write one value, not a list or a mapping."),
    "tuple": ("a list", "Write it as [a, b], or one '- item' per line."),
    "list": ("a list", "Write it as [a, b], or one '- item' per line."),
    "dict": ("a mapping", "Write it as key: value."),
    "model": ("a mapping", "Write it as key: value."),
}
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


@dataclass(frozen=True)
class ErrorLocation:
    """The path of an error in the user's file, and the model of its last key."""

    path: KeyPath
    owner: type[BaseModel] | None
    at_key: bool


def locate_error(model: type[BaseModel], location: tuple[str | int, ...]) -> ErrorLocation:
    """Remove union tags from a location, and find the model of its last key."""
    path: list[str | int] = []
    here: Any = model
    owner: type[BaseModel] | None = None
    for step in location:
        if step == KEY:
            return ErrorLocation(tuple(path), None, at_key=True)
        here = _unwrapped(here)
        arm = _arm(here, step)
        if arm is not None:
            here = arm
            continue
        path.append(step)
        owner = here if _is_model(here) else None
        here = _inside(here, step)
    return ErrorLocation(tuple(path), owner, at_key=False)


def known_keys(model: type[BaseModel]) -> dict[str, str]:
    """Return the keys of a model, mapped to the names of its fields."""
    return {field.alias or name: name for name, field in model.model_fields.items()}


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _unwrapped(kind: Any) -> Any:
    """Strip Annotated and `| None` from a type."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
            continue
        arms = _arms(kind)
        some = [arm for arm in arms if arm is not NoneType]
        if len(some) == 1 and len(arms) == 2:
            kind = some[0]
            continue
        return kind


def _arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else ()


def _arm(kind: Any, tag: str | int) -> Any:
    """Return the member of a union with this tag, or None if there is none."""
    return next((arm for arm in _arms(kind) if tag in _tags(arm)), None)


def _tags(arm: Any) -> tuple[Any, ...]:
    named = tuple(meta.tag for meta in get_args(arm)[1:] if isinstance(meta, Tag))
    model = _unwrapped(arm)
    if named or not _is_model(model):
        return named
    for name in ("type", "kind"):
        field = model.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is Literal:
            return get_args(field.annotation)
    return ()


def _inside(kind: Any, step: str | int) -> Any:
    if _is_model(kind):
        field = kind.model_fields.get(known_keys(kind).get(str(step), ""))
        return field.annotation if field is not None else None
    arguments = get_args(kind)
    if get_origin(kind) is dict:
        return arguments[1]
    return arguments[0] if get_origin(kind) in (tuple, list) else None


def explain(model: type[SpecModel], error: ErrorDetails) -> Problem:
    """Convert a validation error of `model` to a problem at the key the user wrote."""
    location = locate_error(model, error["loc"])
    kind = error["type"]
    if kind == "floe_value":
        context = error["ctx"]
        return Problem(location.path, context["message"], context["hint"], location.at_key)
    if kind == "missing":
        return _missing(location.path)
    if kind == "extra_forbidden":
        return _unknown_key(location)
    if kind.startswith("union_tag"):
        return _unknown_tag(location, error)
    if kind == "literal_error":
        return _not_a_choice(location, error)
    return _wrong_value(location, error)


def _unknown_key(location: ErrorLocation) -> Problem:
    known = sorted(known_keys(location.owner)) if location.owner else []
    near = nearest(str(location.path[-1]), known)
    hint = f"Did you mean '{near}'?" if near else f"Valid keys: {', '.join(known)}."
    return Problem(location.path, "unknown key", hint, at_key=True, meant=near or "")


def _missing(path: KeyPath) -> Problem:
    return Problem(path, "is missing", "Add it.", at_key=True)


def _mistyped(path: KeyPath, meant: str) -> Problem:
    return Problem(path, "unknown key", f"Did you mean '{meant}'?", at_key=True, meant=meant)


def _unknown_tag(location: ErrorLocation, error: ErrorDetails) -> Problem:
    """Explain a missing or unknown `type` or `kind`."""
    context, key = error["ctx"], discriminator_of(error)
    path = (*location.path, key)
    if not isinstance(error["input"], dict):
        return Problem(location.path, "must be a mapping", f"Write it as {key}: …")
    if error["type"] == "union_tag_not_found":
        near = nearest(key, error["input"])
        return _mistyped((*location.path, near), key) if near else _missing(path)
    tag = context["tag"]
    return Problem(path, f"'{tag}' is not a known {key}", suggest(tag, expected_tags(error)))


def discriminator_of(error: ErrorDetails) -> str:
    """Return the key that selects the member of a union."""
    return "type" if error["ctx"]["discriminator"] in ("'type'", "_dimension()") else "kind"


def expected_tags(error: ErrorDetails) -> list[str]:
    """Return the valid values of a union's discriminator; empty if unknown."""
    return _QUOTED.findall(error["ctx"].get("expected_tags", ""))


def _not_a_choice(location: ErrorLocation, error: ErrorDetails) -> Problem:
    expected = expected_words(error)
    written = error["input"]
    if not isinstance(written, str):
        return Problem(location.path, "must be one of the valid values", choices(expected))
    hint = suggest(written, expected, choices(expected))
    return Problem(location.path, f"'{written}' is not a valid value", hint, location.at_key)


def expected_words(error: ErrorDetails) -> list[str]:
    """Return the valid values of a literal."""
    return _QUOTED.findall(error["ctx"]["expected"])


def _wrong_value(location: ErrorLocation, error: ErrorDetails) -> Problem:
    kind, written = error["type"], error["input"]
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        message = f"must be {words} {error['ctx'][limit]}, not {written}"
        return Problem(location.path, message, "Change the number.")
    if kind in ("too_short", "too_long", "string_too_short", "string_too_long"):
        return _wrong_length(location, error)
    base = kind.split("_")[0]
    expected, hint = _KINDS.get(base, (None, ""))
    if expected is None:
        return Problem(location.path, error["msg"].lower(), "Correct the value.", location.at_key)
    return Problem(location.path, f"must be {expected}{_instead(written)}", hint, location.at_key)


def _wrong_length(location: ErrorLocation, error: ErrorDetails) -> Problem:
    context = error["ctx"]
    if "min_length" in context:
        least = context["min_length"]
        words = "must not be empty" if least == 1 else f"needs at least {least} entries"
        return Problem(location.path, words, "Add what is missing.")
    return Problem(location.path, f"must not be longer than {context['max_length']}", "Shorten it.")


def _instead(written: Any) -> str:
    """Return what was written instead, if that is short and helpful."""
    if isinstance(written, dict):
        return ", not a mapping"
    if isinstance(written, list | tuple):
        return ", not a list"
    return f", not '{written}'" if len(str(written)) <= 60 else ""
