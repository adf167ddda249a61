"""Turn composed YAML into plain dicts, lists and text, in one walk.

No tag builds an object, no key is given twice, and no alias grows without end.
"""

from dataclasses import dataclass, field
from typing import Any

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from floe.spec.findings import Finding, KeyPath, key_text
from floe.spec.scalars import Plain, read_plain
from floe.spec.yaml_nodes import COLLECTION, MAX_DEPTH, PLAIN, QUOTED, is_merge
from floe.spec.yaml_words import TOO_DEEP, TOO_MANY

_CORE = "tag:yaml.org,2002:"
_TEXT_TAGS = frozenset({QUOTED, f"{_CORE}str", "!"})
_PLAIN_TAGS = frozenset({PLAIN} | {f"{_CORE}{kind}" for kind in ("int", "float", "bool", "null")})
_COLLECTION_TAGS = frozenset({COLLECTION, f"{_CORE}map", f"{_CORE}seq", "!"})

Tree = Any
"""Nested dicts and lists of text, marked text (scalars.Plain) and None."""
_Chain = tuple[Any, ...] | None
"""A path as a linked list (parent, step): building it costs nothing until someone asks."""


class TooLargeError(Exception):
    """A tree grows beyond its limits."""

    def __init__(self, line: int, words: tuple[str, str]) -> None:
        self.line = line
        self.words = words


@dataclass
class TreeBuilder:
    """Turns nodes into the plain tree in one walk."""

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
            self._refuse_tag(node, chain)
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
            self._refuse_tag(node, chain)
        return text

    def _mapping(self, node: MappingNode, chain: _Chain) -> dict[str, Tree]:
        built: dict[str, Tree] = {}
        merges: list[Node] = []
        for key, value in node.value:
            name = key.value
            if not isinstance(key, ScalarNode):
                self._find(key, chain, "a key must be text", "Use a plain name as the key.")
            elif is_merge(key):
                merges.append(value)
            elif name in built:
                self._find_repeated(node, key, (chain, name))
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
                self._find(source, chain, "'<<' takes a mapping", "Write it as '<<: *anchor'.")

    def _find_repeated(self, mapping: MappingNode, key: ScalarNode, chain: _Chain) -> None:
        first = next(one for one, _ in mapping.value if one.value == key.value)
        line = first.start_mark.line + 1
        self._find(
            key, chain, f"the key '{key.value}' is given twice, first on line {line}",
            "Keep one of them.",
        )  # fmt: skip

    def _refuse_tag(self, node: Node, chain: _Chain) -> None:
        shown = node.tag.replace(_CORE, "!!")
        self._find(node, chain, f"the tag {shown} is not allowed", "Write the value without a tag.")

    def _find(self, node: Node, chain: _Chain, message: str, hint: str) -> None:
        key = key_text(_flatten(chain))
        self.findings.append(Finding(self.name, node.start_mark.line + 1, key, message, hint))


def _flatten(chain: _Chain) -> KeyPath:
    steps: list[str | int] = []
    while chain is not None:
        chain, step = chain
        steps.append(step)
    return tuple(reversed(steps))
