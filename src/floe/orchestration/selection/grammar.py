"""Read a selection: text becomes a tree. Pure: which assets there are is not asked here.

group:bronze            the assets of a group
tag:daily, tag:sla=gold the assets with a tag, or with that value of it
asset:bronze.trades     one asset; bronze.trades alone and bronze/trades mean the same
bronze.*                the assets whose keys a pattern with *, ? and [sets] matches
+x, 2+x                 x and all upstream of it, or so many steps of it
x+, x+2                 x and all downstream of it, or so many steps of it
x and y, x or y, not x  both, one of the two, all but; `not` binds closest, then `and`
(x or y)                brackets, before and after which + may stand too
"""

import re
from dataclasses import dataclass
from typing import Literal, get_args

from floe.errors import FloeError
from floe.spec.nearby import suggest

Kind = Literal["asset", "group", "tag"]
KINDS: tuple[Kind, ...] = get_args(Kind)
ALL = 1_000_000_000
"""How many steps `+` without a number goes: more than any graph has."""

_SPACE = re.compile(r"\s*")
_UPSTREAM = re.compile(r"(\d*)\+")
_DOWNSTREAM = re.compile(r"\+(\d*)")
_WORD = re.compile(r"[^\s()+,]+")
_KEYWORD = re.compile(r"(and|or|not)(?![^\s()])", re.IGNORECASE)


class SelectionError(FloeError):
    """A selection that cannot be read, or that names what is not there."""

    def __init__(self, what: str, hint: str, at: int) -> None:
        self.what = f"{what} (at character {at + 1})"
        self.hint = hint
        super().__init__(f"{self.what}. {hint}".rstrip())


@dataclass(frozen=True)
class Named:
    """What one word means: assets by key, group or tag."""

    kind: Kind
    name: str
    value: str | None
    """With a tag: the value that it must have; None: any."""
    at: int
    """Where the word stands in the text."""


@dataclass(frozen=True)
class Around:
    """Some assets, and so many steps of what is upstream and downstream of them."""

    of: "Expression"
    up: int = 0
    down: int = 0


@dataclass(frozen=True)
class Not:
    """All assets but some."""

    of: "Expression"


@dataclass(frozen=True)
class Both:
    """The assets that are in each of several."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True)
class Either:
    """The assets that are in one of several."""

    parts: tuple["Expression", ...]


Expression = Named | Around | Not | Both | Either


def parse(text: str) -> Expression:
    """Read a whole selection."""
    reader = _Reader(text)
    found = reader.either()
    if not reader.is_done:
        raise reader.unexpected("and, or, or the end")
    return found


class _Reader:
    """Reads from left to right, and knows where it is."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._skip_space()

    @property
    def is_done(self) -> bool:
        return self._at == len(self._text)

    def either(self) -> Expression:
        parts = [self._both()]
        while self._take_keyword("or"):
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Expression:
        parts = [self._one()]
        while self._take_keyword("and"):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _one(self) -> Expression:
        if self._take_keyword("not"):
            return Not(self._one())
        return self._around()

    def _around(self) -> Expression:
        up = self._take_steps(_UPSTREAM)
        inner = self._bracket() if self._take("(") else self._word()
        down = self._take_steps(_DOWNSTREAM)
        return Around(inner, up, down) if up or down else inner

    def _bracket(self) -> Expression:
        inner = self.either()
        if not self._take(")"):
            raise self.unexpected("a )")
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
            hint = "Write + alone for all steps, or a number from 1 on."
            raise SelectionError("0 steps are none", hint, self._at)
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
        found = match.group() if match else self._text[self._at : self._at + 1]
        what = f"'{found}' stands" if found else "the text ends"
        return SelectionError(f"{what} where {wanted} is expected", _HINT, self._at)


_HINT = "Join two with and or or; entries of the list are a union already."


def _named(word: str, at: int) -> Named:
    prefix, colon, rest = word.partition(":")
    if not colon:
        return Named("asset", word, None, at)
    kind = next((kind for kind in KINDS if kind == prefix), None)
    if kind is None:
        hint = suggest(prefix, KINDS, "Write group:x, tag:x, tag:x=y or asset:x.")
        raise SelectionError(f"there is nothing to select by '{prefix}:'", hint, at)
    name, equals, value = rest.partition("=") if kind == "tag" else (rest, "", "")
    if not name:
        raise SelectionError(f"'{word}' names nothing", f"Write it as {kind}:name.", at)
    return Named(kind, name, value if equals else None, at)
