"""Parse YAML text into plain dicts, lists and text.

The schema, not the spelling, decides the type of a value: version 1.10 stays 1.10, NO stays a
country and 18:30 a time. Unquoted numbers and booleans are marked (Plain) for the few keys
that accept any value. Object tags and repeated keys are findings; nesting and alias expansion
are limited.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from yaml._yaml import CParser
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from floe.spec.findings import Finding, KeyPath, key_text

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
BOOLEANS = {"true": "true", "True": "true", "TRUE": "true"} | {
    "false": "false",
    "False": "false",
    "FALSE": "false",
}
NULLS = frozenset({"", "~", "null", "Null", "NULL"})
MAX_DIGITS = 300
MAX_DEPTH = 40
PLAIN, QUOTED, COLLECTION = "plain", "quoted", "collection"
TOO_DEEP = (
    f"nested deeper than {MAX_DEPTH} levels, or an alias that contains itself",
    "Flatten it, or check the aliases.",
)
TOO_MANY = (
    "too many values after expanding aliases",
    "Use fewer aliases, or split the file with an include.",
)
_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({QUOTED, f"{_CORE}str", "!"})
_PLAIN_TAGS = frozenset({PLAIN} | {f"{_CORE}{kind}" for kind in ("int", "float", "bool", "null")})
_COLLECTION_TAGS = frozenset({COLLECTION, f"{_CORE}map", f"{_CORE}seq", "!"})

Tree = Any
"""Nested dicts and lists of text, marked text (Plain) and None."""
_Chain = tuple[Any, ...] | None
"""A path as a linked list (parent, step), flattened only when it is needed."""


class Plain(str):
    """Unquoted text that is a number or boolean, or may become one with its variables."""

    __slots__ = ()


def read_plain(text: str) -> str | None:
    """Read unquoted text: None, a marked number or boolean, or text."""
    if text in NULLS:
        return None
    if text in BOOLEANS:
        return Plain(BOOLEANS[text])
    if len(text) <= MAX_DIGITS and NUMBER.fullmatch(text):
        return Plain(text)
    return text


def typed(value: Any) -> Any:
    """Convert marked text to numbers and booleans, recursively."""
    if isinstance(value, Plain):
        return _number_or_boolean(str(value))
    if isinstance(value, dict):
        return {key: typed(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [typed(item) for item in value]
    return value


def _number_or_boolean(text: str) -> Any:
    if text in ("true", "false") or NUMBER.fullmatch(text):
        return json.loads(text)
    return text


class TooDeepError(Exception):
    """Collections are nested more than MAX_DEPTH levels deep."""

    def __init__(self, line: int) -> None:
        self.line = line


def compose(text: str) -> Node | None:
    """Compose one document; raise yaml.YAMLError or TooDeepError."""
    node: Node | None = _Composer(text).get_single_node()
    return node


class _Composer(CParser):
    """The C parser, with scalars kept as written and with a limit on nesting.

    It recurses in C: without the limit, deep nesting crashes the process.
    """

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        self._depth = 0

    def resolve(self, kind: type[Node], _value: str | None, implicit: Any) -> str:
        if kind is ScalarNode:
            return PLAIN if implicit[0] else QUOTED
        return COLLECTION

    def descend_resolver(self, parent: Node | None, _index: object) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeepError(parent.start_mark.line + 1 if parent is not None else 1)

    def ascend_resolver(self) -> None:
        self._depth -= 1


def is_merge(key: Node) -> bool:
    """Return whether a key merges another mapping: `<<: *anchor`."""
    return bool(key.value == "<<" and key.tag == PLAIN)


class TooLargeError(Exception):
    """A tree exceeds its limits."""

    def __init__(self, line: int, words: tuple[str, str]) -> None:
        self.line = line
        self.words = words


@dataclass
class TreeBuilder:
    """Converts nodes to a plain tree in one pass."""

    name: str
    limit: int
    nodes: int = 0
    depth: int = 0
    variables: list[KeyPath] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def build(self, node: Node | None, chain: _Chain = None) -> Tree:
        if isinstance(node, ScalarNode):
            return self._scalar(node, chain)
        if node is None:
            return None
        self._enter(node)
        if node.tag not in _COLLECTION_TAGS:
            self._reject_tag(node, chain)
        built = (
            self._mapping(node, chain)
            if isinstance(node, MappingNode)
            else [self.build(item, (chain, index)) for index, item in enumerate(node.value)]
        )
        self.depth -= 1
        return built

    def _enter(self, node: Node) -> None:
        self.depth += 1
        self.nodes += len(node.value)
        if self.depth > MAX_DEPTH:
            raise TooLargeError(node.start_mark.line + 1, TOO_DEEP)
        if self.nodes > self.limit:
            raise TooLargeError(node.start_mark.line + 1, TOO_MANY)

    def _scalar(self, node: ScalarNode, chain: _Chain) -> str | None:
        text: str = node.value
        if "${" in text:
            self.variables.append(_flatten(chain))
            return Plain(text) if node.tag in _PLAIN_TAGS else text
        if node.tag in _PLAIN_TAGS:
            return read_plain(text)
        if node.tag not in _TEXT_TAGS:
            self._reject_tag(node, chain)
        return text

    def _mapping(self, node: MappingNode, chain: _Chain) -> dict[str, Tree]:
        built: dict[str, Tree] = {}
        merges: list[Node] = []
        for key, value in node.value:
            name = key.value
            if not isinstance(key, ScalarNode):
                self._report(key, chain, "a key must be text", "Use a plain name as the key.")
            elif is_merge(key):
                merges.append(value)
            elif name in built:
                self._report_repeated(node, key, (chain, name))
            else:
                built[name] = self.build(value, (chain, name))
        for merge in merges:
            self._merge(merge, built, chain)
        return built

    def _merge(self, merge: Node, into: dict[str, Tree], chain: _Chain) -> None:
        for source in merge.value if isinstance(merge, SequenceNode) else [merge]:
            if isinstance(source, MappingNode):
                for key, value in self.build(source, chain).items():
                    into.setdefault(key, value)
            else:
                self._report(source, chain, "'<<' takes a mapping", "Write it as '<<: *anchor'.")

    def _report_repeated(self, mapping: MappingNode, key: ScalarNode, chain: _Chain) -> None:
        first = next(other for other, _ in mapping.value if other.value == key.value)
        line = first.start_mark.line + 1
        self._report(
            key, chain, f"the key '{key.value}' is duplicated; first on line {line}",
            "Keep one of them.",
        )  # fmt: skip

    def _reject_tag(self, node: Node, chain: _Chain) -> None:
        tag = node.tag.replace(_CORE, "!!")
        self._report(node, chain, f"the tag {tag} is not allowed", "Write the value without a tag.")

    def _report(self, node: Node, chain: _Chain, message: str, hint: str) -> None:
        key = key_text(_flatten(chain))
        self.findings.append(Finding(self.name, node.start_mark.line + 1, key, message, hint))


def _flatten(chain: _Chain) -> KeyPath:
    steps: list[str | int] = []
    while chain is not None:
        chain, step = chain
        steps.append(step)
    return tuple(reversed(steps))
