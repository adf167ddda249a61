"""Say in plain words what pydantic found wrong with a value."""

import re
from typing import Any

from pydantic_core import ErrorDetails

from floe.spec.anatomy import Anatomy, dissect, known_keys
from floe.spec.base import SpecModel
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import choices, nearest, suggest

_QUOTED = re.compile(r"'([^']*)'")
_KINDS = {
    "int": ("a whole number", "Write it as 10."),
    "float": ("a number", "Write it as 0.5."),
    "bool": ("true or false", "Write true or false."),
    "string": ("text", "Write one value, not a list or a mapping."),
    "tuple": ("a list", "Write it as [a, b], or one '- item' a line."),
    "list": ("a list", "Write it as [a, b], or one '- item' a line."),
    "dict": ("a mapping", "Write it as key: value."),
    "model": ("a mapping", "Write it as key: value."),
}
_LIMITS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def explain(model: type[SpecModel], error: ErrorDetails) -> Problem:
    """Turn an error of validating `model` into a problem at the key the user wrote."""
    anatomy = dissect(model, error["loc"])
    kind = error["type"]
    if kind == "floe_value":
        context = error["ctx"]
        return Problem(anatomy.path, context["message"], context["hint"], anatomy.at_key)
    if kind == "missing":
        return _missing(anatomy.path)
    if kind == "extra_forbidden":
        return _unknown_key(anatomy)
    if kind.startswith("union_tag"):
        return _unknown_tag(anatomy, error)
    if kind == "literal_error":
        return _not_a_choice(anatomy, error)
    return _wrong_value(anatomy, error)


def _unknown_key(anatomy: Anatomy) -> Problem:
    known = sorted(known_keys(anatomy.owner)) if anatomy.owner else []
    near = nearest(str(anatomy.path[-1]), known)
    hint = f"Did you mean '{near}'?" if near else f"Known here: {', '.join(known)}."
    return Problem(anatomy.path, "unknown key", hint, at_key=True, meant=near or "")


def _missing(path: KeyPath) -> Problem:
    return Problem(path, "is missing", "Add it.", at_key=True)


def _mistyped(path: KeyPath, meant: str) -> Problem:
    return Problem(path, "unknown key", f"Did you mean '{meant}'?", at_key=True, meant=meant)


def _unknown_tag(anatomy: Anatomy, error: ErrorDetails) -> Problem:
    """A union is told apart by one of its keys: `type` or `kind`."""
    context, key = error["ctx"], discriminator_of(error)
    path = (*anatomy.path, key)
    if not isinstance(error["input"], dict):
        return Problem(anatomy.path, "must be a mapping", f"Write it as {key}: …")
    if error["type"] == "union_tag_not_found":
        near = nearest(key, error["input"])
        return _mistyped((*anatomy.path, near), key) if near else _missing(path)
    tag = context["tag"]
    return Problem(path, f"'{tag}' is not a known {key}", suggest(tag, expected_tags(error)))


def discriminator_of(error: ErrorDetails) -> str:
    """Return the key that tells the members of a union apart."""
    return "type" if error["ctx"]["discriminator"] in ("'type'", "_dimension()") else "kind"


def expected_tags(error: ErrorDetails) -> list[str]:
    """Return the values that the discriminator of a union may have; empty when unknown."""
    return _QUOTED.findall(error["ctx"].get("expected_tags", ""))


def _not_a_choice(anatomy: Anatomy, error: ErrorDetails) -> Problem:
    expected = expected_words(error)
    written = error["input"]
    if not isinstance(written, str):
        return Problem(anatomy.path, "must be one of a few words", choices(expected))
    near = nearest(written, expected)
    hint = f"Did you mean '{near}'?" if near else choices(expected)
    return Problem(anatomy.path, f"'{written}' is not a choice here", hint, anatomy.at_key)


def expected_words(error: ErrorDetails) -> list[str]:
    """Return the words of which a value had to be one."""
    return _QUOTED.findall(error["ctx"]["expected"])


def _wrong_value(anatomy: Anatomy, error: ErrorDetails) -> Problem:
    kind, written = error["type"], error["input"]
    if kind in _LIMITS:
        words, limit = _LIMITS[kind]
        message = f"must be {words} {error['ctx'][limit]}, not {written}"
        return Problem(anatomy.path, message, "Change the number.")
    if kind in ("too_short", "too_long", "string_too_short", "string_too_long"):
        return _wrong_length(anatomy, error)
    base = kind.split("_")[0]
    expected, hint = _KINDS.get(base, (None, ""))
    if expected is None:
        return Problem(anatomy.path, error["msg"].lower(), "Correct the value.", anatomy.at_key)
    return Problem(anatomy.path, f"must be {expected}{_instead(written)}", hint, anatomy.at_key)


def _wrong_length(anatomy: Anatomy, error: ErrorDetails) -> Problem:
    context = error["ctx"]
    if "min_length" in context:
        least = context["min_length"]
        words = "must not be empty" if least == 1 else f"needs at least {least} entries"
        return Problem(anatomy.path, words, "Add what is missing.")
    return Problem(anatomy.path, f"must not be longer than {context['max_length']}", "Shorten it.")


def _instead(written: Any) -> str:
    """Repeat what was written, when that is short and helps."""
    if isinstance(written, dict):
        return ", not a mapping"
    if isinstance(written, list | tuple):
        return ", not a list"
    return f", not '{written}'" if len(str(written)) <= 60 else ""
