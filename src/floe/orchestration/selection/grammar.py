"""Parse a selection into an expression. Pure: it does not know the assets.

group:bronze            the assets of a group
tag:daily, tag:sla=gold the assets with a tag, or with this value of the tag
asset:bronze.trades     one asset; same as bronze.trades or bronze/trades
bronze.*                the assets whose keys match a pattern with *, ? and [sets]
+x, 2+x                 x and everything upstream of it, or 2 steps upstream
x+, x+2                 x and everything downstream of it, or 2 steps downstream
x and y, x or y, not x  precedence: `not`, then `and`, then `or`
(x or y)                brackets; + may come before and after them
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from floe.errors import FloeError
from floe.spec.nearby import suggest

Kind = Literal["asset", "group", "tag"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ALL = 1_000_000_000
"""The steps of `+` without a number: more than any graph has."""

_SPACE = re.compile(r"\s*")
_UPSTREAM = re.compile(r"(\d*)\+")
_DOWNSTREAM = re.compile(r"\+(\d*)")
_WORD = re.compile(r"[^\s()+,]+")
_KEYWORD = re.compile(r"(and|or|not)(?![^\s()])", re.IGNORECASE)


class SelectionError(FloeError):
    """A selection has a syntax error or matches nothing."""

    def __init__(self, what: str, hint: str, at: int) -> None:
        self.what = f"{what} (at character {at + 1})"
        self.hint = hint
        super().__init__(f"{self.what}. {hint}".rstrip())


@dataclass(frozen=True)
class Named:
    """Assets by key, group or tag."""

    kind: Kind
    name: str
    value: str | None
    """For a tag: the required value; None for any."""
    at: int
    """The position in the text."""


@dataclass(frozen=True)
class Around:
    """Assets with a number of steps upstream and downstream of them."""

    of: "Expression"
    up: int = 0
    down: int = 0


@dataclass(frozen=True)
class Not:
    """All assets except those of an expression."""

    of: "Expression"


@dataclass(frozen=True)
class Both:
    """The assets that are in all parts."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True)
class Either:
    """The assets that are in any part."""

    parts: tuple["Expression", ...]


Expression = Named | Around | Not | Both | Either


def parse(text: str) -> Expression:
    """Parse a whole selection."""
    reader = _Parser(text)
    expression = reader.disjunction()
    if not reader.is_done:
        raise reader.unexpected("'and', 'or' or the end")
    return expression


class _Parser:
    """A recursive descent parser with a position in the text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._skip_space()

    @property
    def is_done(self) -> bool:
        return self._at == len(self._text)

    def disjunction(self) -> Expression:
        parts = [self._conjunction()]
        while self._take_keyword("or"):
            parts.append(self._conjunction())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _conjunction(self) -> Expression:
        parts = [self._negation()]
        while self._take_keyword("and"):
            parts.append(self._negation())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _negation(self) -> Expression:
        if self._take_keyword("not"):
            return Not(self._negation())
        return self._around()

    def _around(self) -> Expression:
        up = self._take_steps(_UPSTREAM)
        inner = self._bracket() if self._take("(") else self._word()
        down = self._take_steps(_DOWNSTREAM)
        return Around(inner, up, down) if up or down else inner

    def _bracket(self) -> Expression:
        inner = self.disjunction()
        if not self._take(")"):
            raise self.unexpected("')'")
        return inner

    def _word(self) -> Named:
        match = _WORD.match(self._text, self._at)
        if match is None or self._keyword() is not None:
            raise self.unexpected("a selection such as group:bronze or bronze.*")
        at = self._at
        self._move(match.end())
        return _named(match.group(), at)

    def _take_steps(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self._text, self._at)
        if match is None:
            return 0
        steps = int(match.group(1) or ALL)
        if steps == 0:
            hint = "Use + alone for all steps, or a number of at least 1."
            raise SelectionError("the number of steps must be at least 1; got 0", hint, self._at)
        self._move(match.end())
        return steps

    def _take_keyword(self, word: str) -> bool:
        match = self._keyword()
        if match is None or match.group(1).lower() != word:
            return False
        self._move(match.end())
        return True

    def _keyword(self) -> re.Match[str] | None:
        return _KEYWORD.match(self._text, self._at)

    def _take(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._move(self._at + len(sign))
        return True

    def _move(self, to: int) -> None:
        self._at = to
        self._skip_space()

    def _skip_space(self) -> None:
        match = _SPACE.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def unexpected(self, wanted: str) -> SelectionError:
        match = _WORD.match(self._text, self._at)
        word = match.group() if match else self._text[self._at : self._at + 1]
        got = f"'{word}'" if word else "the end of the text"
        return SelectionError(f"expected {wanted}; got {got}", _HINT, self._at)


_HINT = "Combine selections with `and` or `or`; the entries of the list are a union already."


def _named(word: str, at: int) -> Named:
    prefix, colon, rest = word.partition(":")
    if not colon:
        return Named("asset", word, None, at)
    kind = next((kind for kind in KINDS if kind == prefix), None)
    if kind is None:
        hint = suggest(prefix, KINDS, "Use group:x, tag:x, tag:x=y or asset:x.")
        raise SelectionError(f"unknown prefix '{prefix}:'", hint, at)
    name, equals, value = rest.partition("=") if kind == "tag" else (rest, "", "")
    if not name:
        raise SelectionError(f"'{word}' has no name", f"Write it as {kind}:name.", at)
    return Named(kind, name, value if equals else None, at)
