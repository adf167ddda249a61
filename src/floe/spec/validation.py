"""Validate a tree: resolve variables, apply the model, and locate all problems."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from floe.spec.base import SpecModel
from floe.spec.document import LocatedTree, locate
from floe.spec.findings import Finding, KeyPath, Problem
from floe.spec.nearby import nearest
from floe.spec.pydantic_errors import discriminator_of, expected_tags, expected_words, explain
from floe.spec.variables import Resolved, resolve_variables
from floe.spec.yaml_tree import Tree

Model = TypeVar("Model", bound=SpecModel)

_ROUNDS = 50
"""Each round removes invalid parts one level higher; no model is nested this deep."""
_ATTEMPTS = 3
"""Number of stand-ins to try for a required key before its parent is removed."""
_STAND_INS: dict[str, Any] = {
    "int_parsing": "1",
    "float_parsing": "1",
    "bool_parsing": "false",
    "dict_type": {},
    "model_type": {},
    "list_type": [],
    "tuple_type": [],
}


@dataclass
class Renumbering:
    """Maps the indexes of list items to those before other items were removed."""

    _items: dict[KeyPath, list[int]] = field(default_factory=dict)

    def original(self, path: KeyPath) -> KeyPath:
        """Translate a path in the repaired tree to the path in the original tree."""
        if not self._items:
            return path
        before: KeyPath = ()
        for step in path:
            items = self._items.get(before)
            before = (*before, items[step] if items and isinstance(step, int) else step)
        return before

    def keep(self, items: KeyPath, indexes: list[int]) -> None:
        self._items[items] = indexes

    def drop(self, items: KeyPath, index: int, length: int) -> None:
        self._items.setdefault(items, list(range(length))).pop(index)


@dataclass(frozen=True)
class ValidatedTree(Generic[Model]):
    """The model of the valid parts, and the problems of the others."""

    spec: Model
    problems: tuple[Problem, ...]
    renumbering: Renumbering
    stand_ins: frozenset[KeyPath] = frozenset()
    """Required keys with a stand-in value, which no rule can judge."""


def validate_tree(
    model: type[Model], tree: Tree, opaque: frozenset[KeyPath] = frozenset()
) -> ValidatedTree[Model]:
    """Validate a tree; null items of lists are dropped.

    Only the first validation of a part reports problems, because later errors follow from
    the removal of invalid parts.
    """
    renumbering = Renumbering()
    tree = _without_null_items(tree, renumbering, ())
    try:
        return ValidatedTree(model.model_validate(tree), (), renumbering)
    except ValidationError as failure:
        errors = _explained(model, failure)
    repair = _Repair(tree, opaque, renumbering)
    problems = list(repair.problems(errors))
    for _ in range(_ROUNDS):
        retagged = repair.apply(errors)
        try:
            spec = model.model_validate(repair.tree)
            return ValidatedTree(spec, tuple(problems), renumbering, frozenset(repair.stand_ins))
        except ValidationError as failure:
            errors = _explained(model, failure)
        # The keys next to a corrected type are validated only now.
        first = [error for error in errors if is_within(error.problem.path, retagged)]
        problems += repair.problems(first)
    raise AssertionError("removing all invalid parts must leave a valid tree")


@dataclass(frozen=True)
class _Error:
    problem: Problem
    details: ErrorDetails


def _explained(model: type[SpecModel], failure: ValidationError) -> list[_Error]:
    errors = failure.errors(include_url=False)
    return [_Error(explain(model, error), error) for error in errors]


def _without_consequences(errors: list[_Error]) -> Iterator[_Error]:
    """Drop errors that only follow from another error.

    A misspelled key is not also missing, and a list with invalid items is not also empty.
    """
    problems = [error.problem for error in errors]
    meant = {(*problem.path[:-1], problem.meant) for problem in problems if problem.meant}
    parents = {problem.path[:-1] for problem in problems}
    for error in errors:
        kind, path = error.details["type"], error.problem.path
        if not ((kind == "missing" and path in meant) or (kind == "too_short" and path in parents)):
            yield error


class _Repair:
    """Removes invalid parts from a copy of the tree, or replaces them by stand-ins."""

    def __init__(self, tree: Tree, opaque: frozenset[KeyPath], renumbering: Renumbering) -> None:
        self.tree = _copy(tree)
        self.renumbering = renumbering
        self.stand_ins: dict[KeyPath, int] = {}
        self._opaque = opaque
        self._removed: dict[KeyPath, ErrorDetails] = {}

    def is_opaque(self, path: KeyPath) -> bool:
        return is_within(self.renumbering.original(path), self._opaque)

    def problems(self, errors: list[_Error]) -> Iterator[Problem]:
        """Return the problems to report, at the keys as written by the user."""
        for error in _without_consequences(errors):
            path = error.problem.path
            if not self.is_opaque(path):
                yield replace(error.problem, path=self.renumbering.original(self.written(path)))

    def apply(self, errors: list[_Error]) -> frozenset[KeyPath]:
        """Repair the target of each error; return the mappings whose type was corrected.

        Works backwards, so that list indexes stay valid.
        """
        wrong: dict[KeyPath, _Error] = {}
        for error in errors:
            wrong.setdefault(self._target(error), error)
        retagged = set()
        for path in sorted(wrong, reverse=True):
            error = wrong[path]
            if error.details["type"].startswith("union_tag") and self._retag(path, error):
                retagged.add(path)
            else:
                self._fix(path, error)
        return frozenset(retagged)

    def _target(self, error: _Error) -> KeyPath:
        path = error.problem.path
        if error.details["type"].startswith("union_tag"):
            return path[:-1]
        return path if error.details["type"] == "missing" else self.written(path)

    def written(self, path: KeyPath) -> KeyPath:
        """Cut a path where the user wrote a name as shorthand for a mapping."""
        here = self.tree
        for length, step in enumerate(path):
            if not isinstance(here, dict | list):
                return path[:length]
            here = here.get(step) if isinstance(here, dict) else here[int(step)]
        return path

    def _fix(self, path: KeyPath, error: _Error) -> None:
        original, kind = self.renumbering.original(path), error.details["type"]
        if kind == "missing":
            known = self._removed.get(original)
            self._stand_in(path, None if known is None else _plausible(known), kind)
        elif kind != "extra_forbidden" and (original in self.stand_ins or original in self._opaque):
            self._stand_in(path, _plausible(error.details), kind)
        else:
            self._removed[original] = error.details
            self._remove(path)

    def _stand_in(self, path: KeyPath, value: Tree, kind: str) -> None:
        """Set a stand-in value; remove the parent after a few failed attempts."""
        original = self.renumbering.original(path)
        attempts = self.stand_ins[original] = self.stand_ins.get(original, 0) + 1
        if attempts > _ATTEMPTS and len(path) > 1:
            self._remove(path[:-1] if kind == "missing" else path)
            return
        # Unique, so that no stand-in looks like a reference to another.
        text = f"stand_in_{len(self.stand_ins)}"
        self._parent(path)[path[-1]] = text if value is None else _copy(value)

    def _retag(self, path: KeyPath, error: _Error) -> bool:
        """Correct a misspelled `type` or `kind`, so that the mapping can be validated."""
        here = self._at(path)
        if not isinstance(here, dict):
            return False
        key = discriminator_of(error.details)
        if error.problem.meant and str(error.problem.path[-1]) in here:
            here[key] = here.pop(str(error.problem.path[-1]))
            return True
        near = nearest(str(here.get(key, "")), expected_tags(error.details))
        if near is None or here.get(key) == near:
            return False
        here[key] = near
        return True

    def _remove(self, path: KeyPath) -> None:
        parent = self._parent(path)
        if isinstance(parent, list):
            index = int(path[-1])
            self.renumbering.drop(self.renumbering.original(path[:-1]), index, len(parent))
            parent.pop(index)
        else:
            parent.pop(path[-1], None)

    def _parent(self, path: KeyPath) -> Any:
        return self._at(path[:-1])

    def _at(self, path: KeyPath) -> Any:
        here = self.tree
        for step in path:
            here = here[step]
        return here


def is_within(path: KeyPath, paths: frozenset[KeyPath]) -> bool:
    """Return whether a path is one of the paths or inside one of them."""
    return bool(paths) and any(path[:length] in paths for length in range(len(path) + 1))


def _plausible(error: ErrorDetails) -> Tree:
    """Return a valid value to replace an invalid one; None if unclear."""
    if error["type"] == "floe_value":
        return str(error["ctx"]["example"]) or None
    if error["type"] == "literal_error":
        return expected_words(error)[0]
    return _STAND_INS.get(error["type"])


def _without_null_items(tree: Tree, renumbering: Renumbering, path: KeyPath) -> Tree:
    """Drop null items from lists, without copying unchanged parts."""
    if isinstance(tree, dict):
        changed = {
            key: new
            for key, value in tree.items()
            if isinstance(value, dict | list)
            and (new := _without_null_items(value, renumbering, (*path, key))) is not value
        }
        return {**tree, **changed} if changed else tree
    if not isinstance(tree, list):
        return tree
    kept = [index for index, item in enumerate(tree) if item is not None]
    items = [_without_null_items(tree[index], renumbering, (*path, index)) for index in kept]
    if len(kept) < len(tree):
        renumbering.keep(path, kept)
        return items
    same = all(new is old for new, old in zip(items, tree, strict=True))
    return tree if same else items


def _copy(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return [_copy(item) for item in tree] if isinstance(tree, list) else tree


@dataclass(frozen=True)
class ValidatedDocument(Generic[Model]):
    """A validated document: the model of its valid parts, and all problems."""

    document: LocatedTree
    resolved: Resolved
    validated: ValidatedTree[Model]

    @property
    def spec(self) -> Model:
        return self.validated.spec

    @property
    def tree(self) -> dict[str, Tree]:
        return self.resolved.tree

    def findings(self) -> list[Finding]:
        """Return the findings about variables, structure and values."""
        problems = (*self.resolved.problems, *self.validated.problems)
        return [locate(self.document, problem) for problem in problems]

    def locate_problems(self, problems: Iterable[Problem]) -> list[Finding]:
        """Return the findings of rules that do not depend on invalid or unknown values."""
        findings = []
        unsure = (
            self.resolved.opaque
            | self.validated.stand_ins
            | {problem.path for problem in self.validated.problems}
        )
        incomplete = set(self.document.incomplete)
        for problem in problems:
            paths = [self.validated.renumbering.original(p) for p in (problem.path, *problem.also)]
            if incomplete.isdisjoint(paths[1:]) and not any(is_within(p, unsure) for p in paths):
                path = _written(self.tree, paths[0])
                findings.append(locate(self.document, replace(problem, path=path)))
        return findings


def validate_document(
    model: type[Model], document: LocatedTree, environ: Mapping[str, str] | None
) -> ValidatedDocument[Model]:
    """Resolve and validate a document; without an environment, use variable defaults."""
    resolved = resolve_variables(document, environ)
    validated = validate_tree(model, resolved.tree, resolved.opaque)
    return ValidatedDocument(document, resolved, validated)


def _written(tree: Tree, path: KeyPath) -> KeyPath:
    """Cut a path where the user wrote a name as shorthand for a mapping or list."""
    for length, step in enumerate(path):
        if isinstance(tree, dict):
            tree = tree.get(step, {})
        elif isinstance(tree, list) and isinstance(step, int):
            tree = tree[step]
        else:
            return path[:length]
    return path
