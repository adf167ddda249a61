"""Turn a tree into a model, and report everything wrong with its shape and values at once.

Wrong parts are taken out, and required keys get a stand-in, until the rest is valid. So the rules
see everything that could be read, and a wrong key never hides a mistake at another key.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from floe.spec.base import SpecModel
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import nearest
from floe.spec.wording import discriminator_of, expected_tags, expected_words, explain
from floe.spec.yaml_tree import Tree

Model = TypeVar("Model", bound=SpecModel)

_ROUNDS = 50
"""Each round takes out what is wrong one level higher; nothing is nested this deep."""
_ATTEMPTS = 3
"""How many stand-ins are tried for a required key before its parent is taken out."""
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
    """Where the items of lists stood before others were taken out."""

    _items: dict[KeyPath, list[int]] = field(default_factory=dict)

    def original(self, path: KeyPath) -> KeyPath:
        """Translate a path of what is left into one of what was written."""
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
class Shaped(Generic[Model]):
    """The model of what is right, and what is wrong with the rest."""

    spec: Model
    problems: tuple[Problem, ...]
    renumbering: Renumbering
    stood_in: frozenset[KeyPath] = frozenset()
    """Required keys that got a stand-in: no rule can say anything about their values."""


def shape(
    model: type[Model], tree: Tree, opaque: frozenset[KeyPath] = frozenset()
) -> Shaped[Model]:
    """Validate a tree; null items of lists are left out.

    Only the first validation of a part makes problems: later errors follow from what was
    taken out.
    """
    renumbering = Renumbering()
    tree = _without_null_items(tree, renumbering, ())
    try:
        return Shaped(model.model_validate(tree), (), renumbering)
    except ValidationError as failure:
        errors = _explained(model, failure)
    surgeon = _Surgeon(tree, opaque, renumbering)
    problems = list(surgeon.problems(errors))
    for _ in range(_ROUNDS):
        retagged = surgeon.operate(errors)
        try:
            spec = model.model_validate(surgeon.tree)
            return Shaped(spec, tuple(problems), renumbering, frozenset(surgeon.stood_in))
        except ValidationError as failure:
            errors = _explained(model, failure)
        # What stands beside a mistyped type is validated only now.
        first = [error for error in errors if is_within(error.problem.path, retagged)]
        problems += surgeon.problems(first)
    raise AssertionError("taking out all that is wrong leaves something right")


@dataclass(frozen=True)
class _Error:
    problem: Problem
    details: ErrorDetails


def _explained(model: type[SpecModel], failure: ValidationError) -> list[_Error]:
    errors = failure.errors(include_url=False)
    return [_Error(explain(model, error), error) for error in errors]


def _without_echoes(errors: list[_Error]) -> Iterator[_Error]:
    """Leave out what only follows from another error: one mistake is one finding.

    A key is not missing when it was mistyped, nor a list empty when its items are wrong.
    """
    meant = {(*one.problem.path[:-1], one.problem.meant) for one in errors if one.problem.meant}
    parents = {one.problem.path[:-1] for one in errors}
    for error in errors:
        kind, path = error.details["type"], error.problem.path
        if not ((kind == "missing" and path in meant) or (kind == "too_short" and path in parents)):
            yield error


class _Surgeon:
    """Takes wrong parts out of a copy of the tree, and puts stand-ins where something must be."""

    def __init__(self, tree: Tree, opaque: frozenset[KeyPath], renumbering: Renumbering) -> None:
        self.tree = _copy(tree)
        self.renumbering = renumbering
        self.stood_in: dict[KeyPath, int] = {}
        self._opaque = opaque
        self._removed: dict[KeyPath, ErrorDetails] = {}

    def is_opaque(self, path: KeyPath) -> bool:
        return is_within(self.renumbering.original(path), self._opaque)

    def problems(self, errors: list[_Error]) -> Iterator[Problem]:
        """Return what errors mean to the user, at the keys as they were written."""
        for one in _without_echoes(errors):
            path = one.problem.path
            if not self.is_opaque(path):
                yield replace(one.problem, path=self.renumbering.original(self.written(path)))

    def operate(self, errors: list[_Error]) -> frozenset[KeyPath]:
        """Change what each error points at; return the mappings whose type was corrected.

        It goes from the back, so that indexes stay true.
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
                self._treat(path, error)
        return frozenset(retagged)

    def _target(self, error: _Error) -> KeyPath:
        path = error.problem.path
        if error.details["type"].startswith("union_tag"):
            return path[:-1]
        return path if error.details["type"] == "missing" else self.written(path)

    def written(self, path: KeyPath) -> KeyPath:
        """Cut a path where the user wrote a name that is short for a mapping."""
        here = self.tree
        for length, step in enumerate(path):
            if not isinstance(here, dict | list):
                return path[:length]
            here = here.get(step) if isinstance(here, dict) else here[int(step)]
        return path

    def _treat(self, path: KeyPath, error: _Error) -> None:
        original, kind = self.renumbering.original(path), error.details["type"]
        if kind == "missing":
            known = self._removed.get(original)
            self._stand_in(path, None if known is None else _plausible(known), kind)
        elif kind != "extra_forbidden" and (original in self.stood_in or original in self._opaque):
            self._stand_in(path, _plausible(error.details), kind)
        else:
            self._removed[original] = error.details
            self._remove(path)

    def _stand_in(self, path: KeyPath, value: Tree, kind: str) -> None:
        """Put a value where one must be; give up on the parent after a few attempts."""
        original = self.renumbering.original(path)
        attempts = self.stood_in[original] = self.stood_in.get(original, 0) + 1
        if attempts > _ATTEMPTS and len(path) > 1:
            self._remove(path[:-1] if kind == "missing" else path)
            return
        # Each is unique: two stand-ins must not look like a reference from one to the other.
        text = f"stand_in_{len(self.stood_in)}"
        self._parent(path)[path[-1]] = text if value is None else _copy(value)

    def _retag(self, path: KeyPath, error: _Error) -> bool:
        """Correct a mistyped `type` or `kind`, so that the rest of the mapping can be read."""
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


def is_within(path: KeyPath, places: frozenset[KeyPath]) -> bool:
    """Tell whether a path is one of the places or lies inside one."""
    return bool(places) and any(path[:length] in places for length in range(len(path) + 1))


def _plausible(error: ErrorDetails) -> Tree:
    """Return a value that would be valid where one is wrong or unknown; None if unclear."""
    if error["type"] == "floe_value":
        return str(error["ctx"]["example"]) or None
    if error["type"] == "literal_error":
        return expected_words(error)[0]
    return _STAND_INS.get(error["type"])


def _without_null_items(tree: Tree, renumbering: Renumbering, path: KeyPath) -> Tree:
    """Leave null items out of lists; what has none is returned as it is."""
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
