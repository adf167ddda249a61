"""Expressions of a plan: which columns they use, and how."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from floe.execution.column_lineage.expressions import AGGREGATES, TAKEN_FROM_A_ROW
from floe.execution.column_lineage.model import ColumnLineage, Use
from floe.execution.column_lineage.relations import Found, UnknowableError

ENDS_WITH_NUMBER = re.compile(r"#(\d+)L?$")
_NUMBER = re.compile(r"#\d+")
_TOKEN = re.compile(
    r"\b(?P<case>CASE|WHEN|THEN|ELSE|END)\b(?!#)|#(?P<number>\d+)L?(?!\w)"
    r"|(?P<word>\w+)?(?P<space> ?)(?P<open>\()|(?P<close>\))"
)
_LAMBDA = re.compile(r"lambda \S+$")
# What may follow each word of a CASE.
_AFTER = {
    "CASE": ("WHEN",),
    "WHEN": ("THEN",),
    "THEN": ("WHEN", "ELSE", "END"),
    "ELSE": ("END",),
}
_AGGREGATES = frozenset(
    {
        *AGGREGATES,
        *("first", "last", "any_value", "pivotfirst", "collect_list", "collect_set"),
        *(
            name.lower()
            for kind in exp.ALL_FUNCTIONS
            if issubclass(kind, exp.AggFunc) and not issubclass(kind, TAKEN_FROM_A_ROW)
            for name in kind.sql_names()
        ),
    }
)


@dataclass(frozen=True)
class Attribute:
    """A column of an operator's result, by the number that it has in the plan."""

    number: str
    name: str
    lineage: ColumnLineage

    def renumbered(self, number: str, name: str) -> "Attribute":
        """The same column where it has another number and name."""
        return Attribute(number, name, self.lineage)

    def is_called(self, name: str) -> bool:
        """Tell whether a name means it: a query may spell it in another case."""
        return self.name.lower() == name.lower()


Scope = Mapping[str, Attribute]


@dataclass
class _Frame:
    """An open bracket, with the word before it, and the CASEs that are open within."""

    word: str
    start: int = 0
    cases: list[str] = field(default_factory=list)


def add_uses(text: str, scope: Scope, use: Use, found: Found) -> None:
    """Add every column that an expression names, each used in this one way."""
    for attribute, _ in _used(text, scope, found):
        found.add(attribute.lineage, use)


def lineage_of(text: str, scope: Scope, grouped: Collection[str] | None = None) -> ColumnLineage:
    """Return what the value of an expression is made from.

    `grouped` are the columns that an aggregation groups by: what it takes of any other is
    aggregated, whatever the function is called.
    """
    whole = ENDS_WITH_NUMBER.search(text)
    if whole is not None:
        same = scope.get(whole[1])
        if same is not None and same.is_called(text[: whole.start()]):
            return same.lineage
    found = Found()
    for attribute, use in _used(text, scope, found):
        hidden = grouped is not None and attribute.number not in grouped
        found.add(attribute.lineage, Use.AGGREGATION if hidden and use.direct else use)
    return found.lineage()


def _used(text: str, scope: Scope, found: Found) -> Iterator[tuple[Attribute, Use]]:
    frames = [_Frame("")]
    for token in _TOKEN.finditer(text):
        if token["open"]:
            # `if (` and `FILTER (` are words of their own, `upper(` is a function.
            frames.append(_Frame((token["word"] or "") + token["space"], token.end()))
        elif token["close"]:
            _close(frames)
        elif token["case"]:
            _next_case(frames[-1], token["case"])
        else:
            attribute = _resolve(text[: token.start()], token["number"], scope, found)
            if attribute is not None:
                yield attribute, _use(frames, text[: token.start()])
    if len(frames) != 1 or frames[0].cases:
        raise UnknowableError("an expression holds a text that looks like a part of it")


def _close(frames: list[_Frame]) -> None:
    if len(frames) == 1 or frames[-1].cases:
        raise UnknowableError("an expression holds a text with brackets")
    frames.pop()


def _next_case(frame: _Frame, word: str) -> None:
    if word == "CASE":
        frame.cases.append(word)
        return
    if not frame.cases or word not in _AFTER[frame.cases[-1]]:
        raise UnknowableError("an expression holds a text that looks like a CASE")
    frame.cases.pop()
    if word != "END":
        frame.cases.append(word)


def _resolve(before: str, number: str, scope: Scope, found: Found) -> Attribute | None:
    attribute = scope.get(number)
    if attribute is not None and before.lower().endswith(attribute.name.lower()):
        return attribute
    # The variable of a lambda, and the result of a Python function, have numbers too.
    if not _LAMBDA.search(before) and not before.endswith(")"):
        found.reasons.append("it holds a subquery, or a text that looks like a column")
    return None


def _use(frames: list[_Frame], before: str) -> Use:
    use = Use.TRANSFORMATION
    for frame in frames:
        if frame.word == "windowspecdefinition":
            return Use.WINDOW
        if _decides(frame, before):
            return Use.CONDITIONAL
        if frame.word.lower() in _AGGREGATES:
            use = Use.AGGREGATION
    return use


def _decides(frame: _Frame, before: str) -> bool:
    """Tell whether what stands here only decides on a value."""
    if frame.word == "pivotfirst":
        # Its first part says which column of the pivot a value goes to.
        return "," not in before[frame.start :]
    return frame.word in ("if ", "FILTER ") or any(one in ("CASE", "WHEN") for one in frame.cases)


def split_list(text: str, *, separator: str = ", ") -> list[str]:
    """Split at the commas that stand in no bracket."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif depth == 0 and text.startswith(separator, place):
            parts.append(text[start:place])
            start = place + len(separator)
        if depth < 0:
            raise UnknowableError("an expression holds a text with brackets")
    if depth:
        raise UnknowableError("an expression holds a text with brackets")
    return [*parts, text[start:]] if text else []


def split_columns(text: str) -> list[str]:
    """Split a list of columns. Each ends with its number, so that a name may hold a comma."""
    columns, waiting = [], ""
    for part in split_list(text):
        waiting = f"{waiting}, {part}" if waiting else part
        if ENDS_WITH_NUMBER.search(waiting):
            columns.append(waiting)
            waiting = ""
    if waiting:
        raise UnknowableError("its plan has a column without a number")
    return columns


def define(text: str, scope: Scope, grouped: Collection[str] | None = None) -> Attribute:
    """Read `amount#1`, which is taken over, or `(amount#1 * 2) AS twice#3`."""
    number = ENDS_WITH_NUMBER.search(text)
    assert number is not None
    named = text[: number.start()]
    taken = scope.get(number[1])
    if taken is not None and taken.is_called(named):
        return taken.renumbered(number[1], named)
    expression, name = _split_alias(named)
    return Attribute(number[1], name, lineage_of(expression, scope, grouped))


def _split_alias(text: str) -> tuple[str, str]:
    """Part an expression from its name. A name may hold anything but the number of a column."""
    last = max((one.end() for one in _NUMBER.finditer(text)), default=0)
    depth = text.count("(", 0, last) - text.count(")", 0, last)
    for place in range(last, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0 and text.startswith(" AS ", place):
            return text[:place], text[place + 4 :]
    raise UnknowableError("its plan has a column without a name")
