"""What a scalar of YAML means here: text, unless the key that holds it wants something else.

The type comes from the schema, not from how a value happens to look, so that a version 1.10
stays 1.10, NO stays a country and 18:30 a time. Plain numbers and truth values are marked
as such, for the few keys that take any value (parameters, options).
"""

import json
import re
from typing import Any

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
TRUTH = {"true": "true", "True": "true", "TRUE": "true"} | {
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
NOTHING = frozenset({"", "~", "null", "Null", "NULL"})
MAX_DIGITS = 300


class Plain(str):
    """Text that stood without quotes and reads as a number or truth value (or may, once
    its variables are known)."""

    __slots__ = ()


def read_plain(text: str) -> str | None:
    """Return what text without quotes means: nothing, a marked number or truth value, or text."""
    if text in NOTHING:
        return None
    if text in TRUTH:
        return Plain(TRUTH[text])
    if len(text) <= MAX_DIGITS and NUMBER.fullmatch(text):
        return Plain(text)
    return text


def typed(value: Any) -> Any:
    """Turn marked text into the number or truth value it stands for, all the way down."""
    if isinstance(value, Plain):
        return _number_or_truth(str(value))
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [typed(item) for item in value]
    return value


def _number_or_truth(text: str) -> Any:
    if text in ("true", "false") or NUMBER.fullmatch(text):
        return json.loads(text)
    return text
