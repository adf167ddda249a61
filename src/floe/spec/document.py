"""A merged tree of floe.yaml (or platform.yaml) that knows the file and line of everything."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from floe.spec.findings import Finding, KeyPath, Problem, key_text
from floe.spec.yaml_source import YamlSource, read_yaml
from floe.spec.yaml_tree import Tree

EXTENSION = "x-"
"""Keys at the top of a file that begin so are the user's own: a home for anchors."""


@dataclass(frozen=True)
class Place:
    """A file and a line."""

    file: str
    line: int


@dataclass(frozen=True)
class Origin:
    """Where a part of the tree came from: the file, and its path there."""

    source: YamlSource
    path: KeyPath = ()

    def place(self, rest: KeyPath, at_key: bool) -> Place:
        lines = self.source.lines((*self.path, *rest))
        return Place(self.source.name, lines.key if at_key else lines.value)


class Located(Protocol):
    """A tree as it was written, and where everything in it stands."""

    @property
    def tree(self) -> dict[str, Tree]: ...

    @property
    def variables(self) -> Sequence[KeyPath]: ...

    @property
    def incomplete(self) -> Collection[KeyPath]: ...

    def place(self, path: KeyPath, at_key: bool = False) -> Place: ...


@dataclass
class Document:
    """What was read from files, with its values as they were written, variables and all."""

    tree: dict[str, Tree]
    sources: list[YamlSource]
    variables: list[KeyPath] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    is_readable: bool = True
    """False when the file itself is no mapping: then there is nothing to examine."""
    incomplete: set[KeyPath] = field(default_factory=set)
    """Sections of which a file is missing or could not be read: they may declare more."""
    origins: dict[KeyPath, Origin] = field(default_factory=dict)

    def place(self, path: KeyPath, at_key: bool = False) -> Place:
        """Find the file and line of a key or its value, or of what encloses it."""
        for length in range(len(path), -1, -1):
            origin = self.origins.get(path[:length])
            if origin is not None:
                return origin.place(path[length:], at_key)
        return Place(self.sources[0].name, 1)

    def report(self, problem: Problem) -> None:
        self.findings.append(locate(self, problem))


def locate(document: Located, problem: Problem) -> Finding:
    """Say in which file and line a problem stands."""
    place = document.place(problem.path, problem.at_key)
    return Finding(place.file, place.line, key_text(problem.path), problem.message, problem.hint)


def read_document(root: Path, file: Path) -> Document:
    """Read one file, without what it includes; all that is wrong becomes findings."""
    source = read_yaml(file, shown(root, file))
    document = Document(tree={}, sources=[source], findings=list(source.findings))
    if source.is_readable:
        document.origins[()] = Origin(source)
    if not isinstance(source.tree, dict):
        document.is_readable = False
        if source.is_readable:
            words = "is empty" if source.tree is None else "must be a mapping of keys"
            document.report(Problem((), f"the file {words}", "Write key: value in it."))
        return document
    document.tree = {k: v for k, v in source.tree.items() if not k.startswith(EXTENSION)}
    document.variables = [p for p in source.variables if not str(p[0]).startswith(EXTENSION)]
    return document


def shown(root: Path, file: Path) -> str:
    """Name a file as the user would: relative to the project."""
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
