"""Give the variables of a tree their values; those without one are marked as not known yet."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from floe.spec.document import Located
from floe.spec.findings import KeyPath, Problem
from floe.spec.interpolation import VariableSyntaxError, substitute
from floe.spec.scalars import Plain, read_plain
from floe.spec.yaml_tree import Tree


@dataclass(frozen=True)
class Resolved:
    """A tree whose variables were replaced."""

    tree: dict[str, Tree]
    opaque: frozenset[KeyPath]
    """Where a value is not known: nothing can be said about it, right or wrong."""
    problems: tuple[Problem, ...]


def resolve_variables(document: Located, environ: Mapping[str, str] | None) -> Resolved:
    """Replace variables, from the environment or, when there is none, by their defaults alone.

    The document's own tree stays as it is. Without an environment a variable that has no
    default is no mistake: its place is opaque, and it is checked when the project is loaded.
    """
    editor = _Editor(document.tree)
    opaque: set[KeyPath] = set()
    problems: list[Problem] = []
    lookup = (environ if environ is not None else {}).get
    for path in document.variables:
        written = value_at(document.tree, path)
        if not isinstance(written, str) or "${" not in written:
            continue
        try:
            found = substitute(written, lookup)
        except VariableSyntaxError as error:
            problems.append(Problem(path, str(error), error.hint))
            opaque.add(path)
            continue
        if found.missing:
            opaque.add(path)
            problems += [] if environ is None else [_not_set(path, found.missing[0])]
        else:
            value = read_plain(found.text) if isinstance(written, Plain) else found.text
            editor.set(path, value)
    tree = _without_null_keys(editor.tree)
    return Resolved(tree, frozenset(opaque), tuple(problems))


def _without_null_keys(tree: Tree) -> Tree:
    """Leave out keys whose value is null: null means absent. What has none stays as it is."""
    if isinstance(tree, dict):
        kept = {
            key: _without_null_keys(value) if isinstance(value, dict | list) else value
            for key, value in tree.items()
            if value is not None
        }
        same = len(kept) == len(tree) and all(kept[key] is value for key, value in tree.items())
        return tree if same else kept
    if isinstance(tree, list):
        items = [_without_null_keys(item) for item in tree]
        same = all(new is old for new, old in zip(items, tree, strict=True))
        return tree if same else items
    return tree


def _not_set(path: KeyPath, name: str) -> Problem:
    hint = f"Set it in the environment, or give it a default: ${{{name}:…}}."
    return Problem(path, f"the variable {name} is not set", hint)


def value_at(tree: Tree, path: KeyPath) -> Any:
    """Return what stands at a path, None when there is nothing."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


class _Editor:
    """Changes values in a copy of a tree; what is not touched is shared with the original."""

    def __init__(self, tree: dict[str, Tree]) -> None:
        self.tree = dict(tree)
        self._copied: dict[KeyPath, Any] = {(): self.tree}

    def set(self, path: KeyPath, value: Tree) -> None:
        self._own(path[:-1])[path[-1]] = value

    def _own(self, path: KeyPath) -> Any:
        if path not in self._copied:
            parent = self._own(path[:-1])
            copy = parent[path[-1]].copy()
            parent[path[-1]] = copy
            self._copied[path] = copy
        return self._copied[path]
