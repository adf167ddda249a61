"""Compose YAML text into nodes that keep scalars as they are written and know their lines."""

from typing import Any

from yaml._yaml import CParser
from yaml.nodes import Node, ScalarNode

MAX_DEPTH = 40
PLAIN, QUOTED, COLLECTION = "plain", "quoted", "collection"


class TooDeepError(Exception):
    """Collections are nested deeper than anyone means."""

    def __init__(self, line: int) -> None:
        self.line = line


def compose(text: str) -> Node | None:
    """Compose one document; raise yaml.YAMLError or TooDeepError."""
    node: Node | None = _Composer(text).get_single_node()
    return node


class _Composer(CParser):
    """The C parser, told to keep scalars as they are written and to stop at a sane depth.

    It composes by recursion in C, so that without the limit deep nesting ends the process.
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
    """Tell whether a key merges another mapping: `<<: *anchor`."""
    return bool(key.value == "<<" and key.tag == PLAIN)
