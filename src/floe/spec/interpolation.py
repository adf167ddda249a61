"""Replace `${VAR}`, `${VAR:default}` and `${VAR:-default}` in a text; `$${` stands for `${`.

Braces balance, so that a default may hold placeholders or further variables:
`${FX_DIR:landing/{business_date}}`. A variable that is set to nothing takes its default.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from floe.errors import FloeError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENING = re.compile(r"\$?\$\{")
_ESCAPED = "$${"
_MAX_NESTING = 5

Lookup = Callable[[str], str | None]


class VariableSyntaxError(FloeError):
    """A `${` does not begin a variable."""

    hint = "Write ${NAME} or ${NAME:default}, or $${ for the text ${ itself."


@dataclass(frozen=True)
class Substitution:
    """A text with its variables replaced, and the variables that had neither value nor default."""

    text: str
    missing: tuple[str, ...] = ()


def substitute(text: str, lookup: Lookup) -> Substitution:
    """Replace every variable; one without a value or default stays as it was written."""
    missing: list[str] = []
    return Substitution(_replace(text, lookup, missing, depth=0), tuple(missing))


def _replace(text: str, lookup: Lookup, missing: list[str], depth: int) -> str:
    if depth > _MAX_NESTING:
        raise VariableSyntaxError(f"variables are nested deeper than {_MAX_NESTING} levels")
    parts: list[str] = []
    position = 0
    while opening := _OPENING.search(text, position):
        parts.append(text[position : opening.start()])
        if opening.group() == _ESCAPED:
            parts.append("${")
            position = opening.end()
            continue
        end = _closing_brace(text, opening.end())
        parts.append(_value(text[opening.end() : end], lookup, missing, depth))
        position = end + 1
    return "".join([*parts, text[position:]])


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise VariableSyntaxError(f"'{text[start - 2 : start + 20]}' has no closing brace")


def _value(inner: str, lookup: Lookup, missing: list[str], depth: int) -> str:
    name, colon, default = inner.partition(":")
    if not _NAME.fullmatch(name):
        raise VariableSyntaxError(f"'${{{inner}}}' does not name a variable")
    value = lookup(name)
    if colon:
        return value or _replace(default.removeprefix("-"), lookup, missing, depth + 1)
    if value is None:
        missing.append(name)
        return f"${{{inner}}}"
    return value
