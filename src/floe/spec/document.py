"""The merged tree of floe.yaml or platform.yaml, with file and line of each key."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from floe.spec.findings import Finding, KeyPath, Problem, key_text
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
"""Number of nodes that any file may have; larger files may have one more per byte."""


class Lines(NamedTuple):
    """The line numbers of a key and its value, from 1."""

    key: int
    value: int


class LineIndex:
    """Finds the line numbers of keys and values; caches the keys of mappings."""

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
        """Return the lines of a key and its value, or those of the nearest parent."""
        return self._index.find(path)

    @cached_property
    def _index(self) -> LineIndex:
        """Built on first use, because valid files need no line numbers."""
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
        f"the file has {size:,} bytes; the maximum is {limit:,}",
        "Split it with an include, such as datasets: [datasets/*.yaml].",
    )


def error_line(error: yaml.YAMLError, text: str) -> int:
    """Return the line of a syntax error; for an unclosed quote or bracket, its start."""
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
        return "Quote text that starts with @, % or `."
    if "${" in written:
        return 'Put the value in quotes: "${NAME:default}".'
    if "mapping values are not allowed" in problem:
        return "Check the indentation, and quote text that contains ': '."
    return "Check the indentation, quotes and brackets around this line."


EXTENSION = "x-"
"""Prefix of top-level keys that floe ignores; users define anchors there."""


@dataclass(frozen=True)
class FileLine:
    """A file and a line."""

    file: str
    line: int


@dataclass(frozen=True)
class Origin:
    """Where a part of the tree comes from: the file, and the path in that file."""

    source: YamlSource
    path: KeyPath = ()

    def find_line(self, rest: KeyPath, at_key: bool) -> FileLine:
        lines = self.source.lines((*self.path, *rest))
        return FileLine(self.source.name, lines.key if at_key else lines.value)


class LocatedTree(Protocol):
    """A tree as written, with the file and line of each key."""

    @property
    def tree(self) -> dict[str, Tree]: ...

    @property
    def variables(self) -> Sequence[KeyPath]: ...

    @property
    def incomplete(self) -> Collection[KeyPath]: ...

    def find_line(self, path: KeyPath, at_key: bool = False) -> FileLine: ...


@dataclass
class Document:
    """The tree read from files, with variables unresolved."""

    tree: dict[str, Tree]
    sources: list[YamlSource]
    variables: list[KeyPath] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_readable: bool = True
    """False if the file is not a mapping, so nothing can be validated."""
    incomplete: set[KeyPath] = field(default_factory=set)
    """Sections with a missing or unreadable file; they may declare more names."""
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def find_line(self, path: KeyPath, at_key: bool = False) -> FileLine:
        """Find the file and line of a key or its value, or of the nearest parent."""
        for length in range(len(path), -1, -1):
            origin = self.origins.get(path[:length])
            if origin is not None:
                return origin.find_line(path[length:], at_key)
        return FileLine(self.sources[0].name, 1)

    def report(self, problem: Problem) -> None:
        self.findings.append(locate(self, problem))


def locate(document: LocatedTree, problem: Problem) -> Finding:
    """Convert a problem to a finding with its file and line."""
    position = document.find_line(problem.path, problem.at_key)
    return Finding(
        position.file, position.line, key_text(problem.path), problem.message, problem.hint
    )


def read_document(root: Path, file: Path) -> Document:
    """Read one file, without its includes; errors become findings."""
    source = read_yaml(file, display_path(root, file))
    document = Document(tree={}, sources=[source], findings=list(source.findings))
    if source.is_readable:
        document.origins[()] = Origin(source)
    if not isinstance(source.tree, dict):
        document.is_readable = False
        if source.is_readable:
            words = "is empty" if source.tree is None else "must be a mapping of keys"
            document.report(Problem((), f"the file {words}", "Add keys, as key: value."))
        return document
    document.tree = {k: v for k, v in source.tree.items() if not k.startswith(EXTENSION)}
    document.variables = [p for p in source.variables if not str(p[0]).startswith(EXTENSION)]
    return document


def display_path(root: Path, file: Path) -> str:
    """Return a file's path relative to the project, or absolute if it is outside."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
