"""Read a YAML file into a plain tree; report errors and find keys by file and line."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from floe.spec.findings import Finding, KeyPath
from floe.spec.yaml_tree import (
    TOO_DEEP,
    TooDeepError,
    TooLargeError,
    Tree,
    TreeBuilder,
    compose,
    is_merge,
)

MAX_BYTES = 8 * 1024 * 1024
MAX_NODES = 1_000_000
FREE_NODES = 10_000
"""Nodes that any file may have; beyond these, one more per byte of the file."""


class Lines(NamedTuple):
    """The line numbers of a key and its value, from 1."""

    key: int
    value: int


class LineIndex:
    """Finds the lines of keys and values in composed nodes; caches the keys of mappings."""

    def __init__(self, root: Node | None) -> None:
        self._root = root
        self._children: dict[int, dict[str, tuple[int, Node]]] = {}

    def find(self, path: KeyPath) -> Lines:
        node = self._root
        if node is None:
            return Lines(1, 1)
        key_line = node.start_mark.line + 1
        for step in path:
            child = self._child(node, step)
            if child is None:
                break
            key_line, node = child
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


@dataclass(frozen=True)
class YamlSource:
    """A YAML file: its tree and its syntax errors."""

    name: str
    sha256: str
    tree: Tree = None
    text: str | None = None
    """The text of the file; None when it is not valid YAML."""
    variables: tuple[KeyPath, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_readable(self) -> bool:
        return self.text is not None

    def lines(self, path: KeyPath) -> Lines:
        """Return the lines of a key and its value, or of the nearest parent that exists."""
        return self._index.find(path)

    @cached_property
    def _index(self) -> LineIndex:
        """Parse again when a line is first needed: valid files never need one."""
        return LineIndex(compose(self.text or ""))


def read_yaml(path: Path, name: str) -> YamlSource:
    """Read a file; findings refer to it as `name`."""
    content = path.read_bytes()
    if len(content) > MAX_BYTES:
        return _unreadable(name, content, 1, too_large(len(content), MAX_BYTES))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        return _unreadable(name, content, line, ("not UTF-8 text", "Save the file as UTF-8."))
    return parse_yaml(text, name, content)


def parse_yaml(text: str, name: str, content: bytes | None = None) -> YamlSource:
    """Read YAML text; findings refer to it as `name`."""
    content = text.encode() if content is None else content
    try:
        node = compose(text)
    except TooDeepError as error:
        return _unreadable(name, content, error.line, TOO_DEEP)
    except yaml.YAMLError as error:
        line = error_line(error, text)
        return _unreadable(name, content, line, explain_syntax(error, text, line))
    builder = TreeBuilder(name, limit=min(MAX_NODES, FREE_NODES + len(text)))
    try:
        tree = builder.build(node)
    except TooLargeError as error:
        return _unreadable(name, content, error.line, error.words)
    return YamlSource(
        name=name,
        sha256=hashlib.sha256(content).hexdigest(),
        tree=tree,
        text=text,
        variables=tuple(builder.variables),
        findings=tuple(builder.findings),
    )


def _unreadable(name: str, content: bytes, line: int, words: tuple[str, str]) -> YamlSource:
    finding = Finding(name, line, "", *words)
    digest = hashlib.sha256(content).hexdigest()
    return YamlSource(name, digest, findings=(finding,))


def too_large(size: int, limit: int) -> tuple[str, str]:
    return (
        f"{size:,} bytes long, more than the {limit:,} that one file may hold",
        "Split it with an include, such as datasets: [datasets/*.yaml].",
    )


def error_line(error: yaml.YAMLError, text: str) -> int:
    """Return the line of a syntax error; for an unclosed quote or bracket, where it opens."""
    last = max(len(text.splitlines()), 1)
    problem, context = (getattr(error, f"{kind}_mark", None) for kind in ("problem", "context"))
    if context is not None and (problem is None or problem.line >= last):
        problem = context
    return min(problem.line + 1, last) if problem is not None else 1


def explain_syntax(error: yaml.YAMLError, text: str, line: int) -> tuple[str, str]:
    """Return the message and the hint for a syntax error."""
    problem = getattr(error, "problem", None) or str(error).split("\n", maxsplit=1)[0]
    lines = text.splitlines()
    written = lines[line - 1] if 0 < line <= len(lines) else ""
    return f"not valid YAML: {problem.rstrip('.')}", _syntax_hint(problem, written)


def _syntax_hint(problem: str, written: str) -> str:
    if "another document" in problem or "single document" in problem:
        return "Keep one document in the file: remove the '---' line."
    if "\t" in written[: len(written) - len(written.lstrip())]:
        return "Indent with spaces, not tabs."
    if "cannot start any token" in problem:
        return "Put text that begins with @, % or ` in quotes."
    if "${" in written:
        return 'Put the value in quotes: "${NAME:default}".'
    if "mapping values are not allowed" in problem:
        return "Check the indentation, and put text that holds ': ' in quotes."
    return "Check the indentation, quotes and brackets around this line."
