"""Read one YAML file into a plain tree that knows the line of every key and value.

Only data comes out: no tags that build objects, no key given twice, no file, nesting or
alias that grows without end. Whatever is wrong becomes a finding with its line.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import yaml

from floe.spec.findings import Finding, KeyPath
from floe.spec.yaml_lines import LineIndex, Lines
from floe.spec.yaml_nodes import TooDeepError, compose
from floe.spec.yaml_tree import TooLargeError, Tree, TreeBuilder
from floe.spec.yaml_words import TOO_DEEP, error_line, explain_syntax, too_large

MAX_BYTES = 8 * 1024 * 1024
MAX_NODES = 1_000_000
FREE_NODES = 10_000
"""A file may hold this many nodes however short it is; beyond, one node a byte is plenty."""


@dataclass(frozen=True)
class YamlSource:
    """One file: its tree, and what is wrong with it as YAML."""

    name: str
    sha256: str
    tree: Tree = None
    text: str | None = None
    """What was read; None when it is not YAML."""
    variables: tuple[KeyPath, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def is_readable(self) -> bool:
        return self.text is not None

    def lines(self, path: KeyPath) -> Lines:
        """Find the lines of a key and its value; a path that ends early gives its last place."""
        return self._index.find(path)

    @cached_property
    def _index(self) -> LineIndex:
        """Composed anew when a line is first asked for: most files are right, and none is."""
        return LineIndex(compose(self.text or ""))


def read_yaml(path: Path, name: str) -> YamlSource:
    """Read a file; `name` is how findings call it."""
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
    """Read YAML text; see read_yaml."""
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
