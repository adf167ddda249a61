"""Parse a Spark plan's text: the operator tree, and the columns of expressions."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from floe.execution.column_lineage.model import ColumnLineage, SourceCollector, UnknowableError, Use
from floe.execution.column_lineage.sql_expressions import AGGREGATES, SINGLE_ROW_FUNCTIONS

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
            if issubclass(kind, exp.AggFunc) and not issubclass(kind, SINGLE_ROW_FUNCTIONS)
            for name in kind.sql_names()
        ),
    }
)


@dataclass(frozen=True)
class Attribute:
    """A column of an operator's result, with its id in the plan."""

    attribute_id: str
    name: str
    lineage: ColumnLineage

    def renumbered(self, attribute_id: str, name: str) -> "Attribute":
        """Return the same column under another id and name."""
        return Attribute(attribute_id, name, self.lineage)

    def is_called(self, name: str) -> bool:
        """Tell whether the column has this name; case-insensitive."""
        return self.name.lower() == name.lower()


Scope = Mapping[str, Attribute]


@dataclass
class _Frame:
    """An open parenthesis, the word before it, and the open CASEs inside it."""

    word: str
    start: int = 0
    cases: list[str] = field(default_factory=list)


def add_uses(text: str, scope: Scope, use: Use, collected: SourceCollector) -> None:
    """Add every column of an expression, all with the same use."""
    for attribute, _ in _used(text, scope, collected):
        collected.add(attribute.lineage, use)


def lineage_of(text: str, scope: Scope, grouped: Collection[str] | None = None) -> ColumnLineage:
    """Return the sources of an expression's value.

    `grouped` holds the ids of an aggregation's GROUP BY columns: any other column is aggregated,
    whatever the function is called.
    """
    whole = ENDS_WITH_NUMBER.search(text)
    if whole is not None:
        same = scope.get(whole[1])
        if same is not None and same.is_called(text[: whole.start()]):
            return same.lineage
    collected = SourceCollector()
    for attribute, use in _used(text, scope, collected):
        hidden = grouped is not None and attribute.attribute_id not in grouped
        collected.add(attribute.lineage, Use.AGGREGATION if hidden and use.direct else use)
    return collected.lineage()


def _used(text: str, scope: Scope, collected: SourceCollector) -> Iterator[tuple[Attribute, Use]]:
    frames = [_Frame("")]
    for token in _TOKEN.finditer(text):
        if token["open"]:
            # `if (` and `FILTER (` are keywords, `upper(` is a function.
            frames.append(_Frame((token["word"] or "") + token["space"], token.end()))
        elif token["close"]:
            _close(frames)
        elif token["case"]:
            _next_case(frames[-1], token["case"])
        else:
            attribute = _resolve(text[: token.start()], token["number"], scope, collected)
            if attribute is not None:
                yield attribute, _use(frames, text[: token.start()])
    if len(frames) != 1 or frames[0].cases:
        raise UnknowableError("an expression contains a text literal that looks like SQL")


def _close(frames: list[_Frame]) -> None:
    if len(frames) == 1 or frames[-1].cases:
        raise UnknowableError("an expression contains a text with brackets")
    frames.pop()


def _next_case(frame: _Frame, word: str) -> None:
    if word == "CASE":
        frame.cases.append(word)
        return
    if not frame.cases or word not in _AFTER[frame.cases[-1]]:
        raise UnknowableError("an expression contains a text literal that looks like a CASE")
    frame.cases.pop()
    if word != "END":
        frame.cases.append(word)


def _resolve(
    before: str, column_id: str, scope: Scope, collected: SourceCollector
) -> Attribute | None:
    attribute = scope.get(column_id)
    if attribute is not None and before.lower().endswith(attribute.name.lower()):
        return attribute
    # Lambda variables and results of Python functions have ids too.
    if not _LAMBDA.search(before) and not before.endswith(")"):
        collected.reasons.append("it contains a subquery, or a text that looks like a column")
    return None


def _use(frames: list[_Frame], before: str) -> Use:
    use = Use.TRANSFORMATION
    for frame in frames:
        if frame.word == "windowspecdefinition":
            return Use.WINDOW
        if _is_condition(frame, before):
            return Use.CONDITIONAL
        if frame.word.lower() in _AGGREGATES:
            use = Use.AGGREGATION
    return use


def _is_condition(frame: _Frame, before: str) -> bool:
    """Tell whether the current position is a condition, not a value."""
    if frame.word == "pivotfirst":
        # Its first argument decides which column of the pivot gets the value.
        return "," not in before[frame.start :]
    return frame.word in ("if ", "FILTER ") or any(word in ("CASE", "WHEN") for word in frame.cases)


def split_list(text: str, *, separator: str = ", ") -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for position, letter in enumerate(text):
        if letter in "([":
            depth += 1
        elif letter in ")]":
            depth -= 1
        elif depth == 0 and text.startswith(separator, position):
            parts.append(text[start:position])
            start = position + len(separator)
        if depth < 0:
            raise UnknowableError("an expression contains a text with brackets")
    if depth:
        raise UnknowableError("an expression contains a text with brackets")
    return [*parts, text[start:]] if text else []


def split_columns(text: str) -> list[str]:
    """Split a list of columns. Each ends with its id, so names may contain commas."""
    columns, waiting = [], ""
    for part in split_list(text):
        waiting = f"{waiting}, {part}" if waiting else part
        if ENDS_WITH_NUMBER.search(waiting):
            columns.append(waiting)
            waiting = ""
    if waiting:
        raise UnknowableError("its plan has a column without an id")
    return columns


def define(text: str, scope: Scope, grouped: Collection[str] | None = None) -> Attribute:
    """Parse `amount#1`, an existing column, or `(amount#1 * 2) AS twice#3`."""
    ending = ENDS_WITH_NUMBER.search(text)
    assert ending is not None
    named = text[: ending.start()]
    taken = scope.get(ending[1])
    if taken is not None and taken.is_called(named):
        return taken.renumbered(ending[1], named)
    expression, name = _split_alias(named)
    return Attribute(ending[1], name, lineage_of(expression, scope, grouped))


def _split_alias(text: str) -> tuple[str, str]:
    """Split an expression and its alias, which can contain anything but a column id."""
    last = max((match.end() for match in _NUMBER.finditer(text)), default=0)
    depth = text.count("(", 0, last) - text.count(")", 0, last)
    for position in range(last, len(text)):
        depth += (text[position] == "(") - (text[position] == ")")
        if depth == 0 and text.startswith(" AS ", position):
            return text[:position], text[position + 4 :]
    raise UnknowableError("its plan has a column without a name")


ANALYSED = "== Analyzed Logical Plan ==\n"
NEXT_PART = "\n== Optimized Logical Plan =="
_LINE = re.compile(r"((?:[: ]  )*)(\+- |:- )(.*)")
INDENT = 3


@dataclass
class PlanNode:
    """An operator: its line in the plan, and its input operators."""

    text: str
    depth: int
    children: list["PlanNode"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Spark's name of the operator."""
        match = re.match(r"[A-Za-z0-9]+", self.text)
        return match[0] if match else ""

    @property
    def body(self) -> str:
        """The rest of the line after the name."""
        return self.text[len(self.name) :].strip()

    def walk(self) -> Iterator["PlanNode"]:
        """Yield this operator and all below it, parents first."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def read_plan(explained: str) -> tuple[str, PlanNode]:
    """Parse EXPLAIN EXTENDED: return its column list and the analysed plan.

    A plan with a column name of several lines cannot be read.
    """
    _, header, rest = explained.partition(ANALYSED)
    columns, *lines = rest.partition(NEXT_PART)[0].rstrip("\n").split("\n")
    if not header or not lines:
        raise UnknowableError("Spark returned no plan")
    return columns, _read_tree(lines)


def _read_tree(lines: list[str]) -> PlanNode:
    root = PlanNode(lines[0], 0)
    above = [root]
    for line in lines[1:]:
        node = _node(line)
        while above[-1].depth >= node.depth:
            above.pop()
            if not above:
                raise UnknowableError("its plan cannot be read")
        # Two levels deeper means a subquery within an expression, not an input.
        if node.depth == above[-1].depth + 1:
            above[-1].children.append(node)
        above.append(node)
    return root


def _node(line: str) -> PlanNode:
    match = _LINE.fullmatch(line)
    if match is None:
        raise UnknowableError("its plan contains a text of several lines")
    return PlanNode(match[3], len(match[1]) // INDENT + 1)
