"""Find the line of any key or value in composed YAML."""

from typing import NamedTuple

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from floe.spec.findings import KeyPath
from floe.spec.yaml_nodes import is_merge


class Lines(NamedTuple):
    """Where a key and its value stand, counted from 1."""

    key: int
    value: int


class LineIndex:
    """Finds the lines of keys and values in composed nodes, and remembers what it looked at."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._children: dict[int, dict[str, tuple[int, Node]]] = {}

    def find(self, path: KeyPath) -> Lines:
        node = self._root
        if node is None:
            return Lines(1, 1)
        key_line = node.start_mark.line + 1
        for step in path:
            found = self._child(node, step)
            if found is None:
                break
            key_line, node = found
        return Lines(key_line, node.start_mark.line + 1)

    def _child(self, node: Node, step: str | int) -> tuple[int, Node] | None:
        if isinstance(node, MappingNode):
            return self._keys(node).get(str(step))
        if isinstance(node, SequenceNode) and isinstance(step, int) and step < len(node.value):
            item: Node = node.value[step]
            return item.start_mark.line + 1, item
        return None

    def _keys(self, mapping: MappingNode) -> dict[str, tuple[int, Node]]:
        keys = self._children.get(id(mapping))
        if keys is None:
            keys = self._children[id(mapping)] = {}
            merged = [value for key, value in mapping.value if is_merge(key)]
            for key, value in mapping.value:
                if isinstance(key, ScalarNode):
                    keys.setdefault(key.value, (key.start_mark.line + 1, value))
            for value in merged:
                for source in value.value if isinstance(value, SequenceNode) else [value]:
                    if isinstance(source, MappingNode):
                        keys.update(self._keys(source) | keys)
        return keys
