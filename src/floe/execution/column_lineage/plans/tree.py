"""The tree of a plan, as its text draws it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from floe.execution.column_lineage.relations import UnknowableError

ANALYSED = "== Analyzed Logical Plan ==\n"
NEXT_PART = "\n== Optimized Logical Plan =="
_LINE = re.compile(r"((?:[: ]  )*)(\+- |:- )(.*)")
INDENT = 3


@dataclass
class PlanNode:
    """An operator: its line, and the operators whose rows it takes."""

    text: str
    depth: int
    children: list["PlanNode"] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The word by which Spark calls it."""
        found = re.match(r"[A-Za-z0-9]+", self.text)
        return found[0] if found else ""

    @property
    def body(self) -> str:
        """What it says of itself behind its name."""
        return self.text[len(self.name) :].strip()

    def walk(self) -> Iterator["PlanNode"]:
        """This one and all below it, each before its children."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))


def read_plan(explained: str) -> tuple[str, PlanNode]:
    """Return the analysed plan of what EXPLAIN EXTENDED says, and the line that lists its columns.

    A column that is called by more than a line makes a plan that cannot be read.
    """
    _, found, rest = explained.partition(ANALYSED)
    columns, *lines = rest.partition(NEXT_PART)[0].rstrip("\n").split("\n")
    if not found or not lines:
        raise UnknowableError("Spark shows no plan of it")
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
        # What is drawn two steps deeper is a subquery within an expression, not an operator's rows.
        if node.depth == above[-1].depth + 1:
            above[-1].children.append(node)
        above.append(node)
    return root


def _node(line: str) -> PlanNode:
    found = _LINE.fullmatch(line)
    if found is None:
        raise UnknowableError("its plan holds a text of several lines")
    return PlanNode(found[3], len(found[1]) // INDENT + 1)
