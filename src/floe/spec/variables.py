"""Replace variables: `${VAR}`, `${VAR:default}`, `${VAR:-default}`, escape `$${`.

Braces must balance, so that a default can contain placeholders or other variables:
`${FX_DIR:landing/{business_date}}`. A variable that is set to "" takes its default.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from floe.errors import FloeError
from floe.spec.document import LocatedTree
from floe.spec.findings import KeyPath, Problem
from floe.spec.yaml_tree import Plain, Tree, read_plain

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPENING = re.compile(r"\$?\$\{")
_ESCAPED = "$${"
_MAX_NESTING = 5

Lookup = Callable[[str], str | None]


class VariableSyntaxError(FloeError):
    """A `${` is not followed by a valid variable."""

    hint = "Write ${NAME} or ${NAME:default}, or $${ for the text ${ itself."


@dataclass(frozen=True)
class Substitution:
    """Text with its variables replaced, and the variables without a value or default."""

    text: str
    missing: tuple[str, ...] = ()


def substitute(text: str, lookup: Lookup) -> Substitution:
    """Replace variables; leave those without a value or default unchanged."""
    missing: list[str] = []
    return Substitution(_replace(text, lookup, missing, depth=0), tuple(missing))


def _replace(text: str, lookup: Lookup, missing: list[str], depth: int) -> str:
    if depth > _MAX_NESTING:
        raise VariableSyntaxError(f"variables are nested deeper than {_MAX_NESTING} levels")
    parts: list[str] = []
    position = 0
    while opening := _OPENING.search(text, position):
        parts.append(text[position : opening.start()])
        if opening.group() == _ESCAPED:
            parts.append("${")
            position = opening.end()
            continue
        end = _closing_brace(text, opening.end())
        parts.append(_value(text[opening.end() : end], lookup, missing, depth))
        position = end + 1
    return "".join([*parts, text[position:]])


def _closing_brace(text: str, start: int) -> int:
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise VariableSyntaxError(f"'{text[start - 2 : start + 20]}' has no closing brace")


def _value(inner: str, lookup: Lookup, missing: list[str], depth: int) -> str:
    name, colon, default = inner.partition(":")
    if not _NAME.fullmatch(name):
        raise VariableSyntaxError(f"'${{{inner}}}' does not name a variable")
    value = lookup(name)
    if colon:
        return value or _replace(default.removeprefix("-"), lookup, missing, depth + 1)
    if value is None:
        missing.append(name)
        return f"${{{inner}}}"
    return value


@dataclass(frozen=True)
class Resolved:
    """A tree with its variables replaced."""

    tree: dict[str, Tree]
    opaque: frozenset[KeyPath]
    """Paths whose value is unknown and cannot be checked."""
    problems: tuple[Problem, ...]


def resolve_variables(document: LocatedTree, environ: Mapping[str, str] | None) -> Resolved:
    """Replace variables from the environment, or by their defaults if it is None.

    The document's tree is not changed. Without an environment, a variable without a default
    is not an error: its path is opaque and its value is checked when the project is loaded.
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
            result = substitute(written, lookup)
        except VariableSyntaxError as error:
            problems.append(Problem(path, str(error), error.hint))
            opaque.add(path)
            continue
        if result.missing:
            opaque.add(path)
            problems += [] if environ is None else [_not_set(path, result.missing[0])]
        else:
            value = read_plain(result.text) if isinstance(written, Plain) else result.text
            editor.set(path, value)
    tree = _without_null_keys(editor.tree)
    return Resolved(tree, frozenset(opaque), tuple(problems))


def _without_null_keys(tree: Tree) -> Tree:
    """Drop keys whose value is null, without copying unchanged parts."""
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
    """Return the value at a path, or None."""
    for step in path:
        if isinstance(tree, dict):
            tree = tree.get(step)
        elif isinstance(tree, list) and isinstance(step, int) and step < len(tree):
            tree = tree[step]
        else:
            return None
    return tree


class _Editor:
    """Changes values in a copy of a tree; shares unchanged parts with the original."""

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
