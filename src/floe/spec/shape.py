"""Turn a tree into a model, and say everything that is wrong with its shape and values at once.

Where parts of the tree are wrong they are taken out, until the rest is right: so the
references and the consistency of the rest are checked in the same go.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from floe.spec.base import SpecModel
from floe.spec.findings import KeyPath, Problem
from floe.spec.wording import expected_words, explain
from floe.spec.yaml_tree import Tree

Model = TypeVar("Model", bound=SpecModel)

_ROUNDS = 50
"""Each round takes out what is wrong one level higher; nothing is nested this deep."""
_STAND_INS = {"int_parsing": "1", "float_parsing": "1", "bool_parsing": "false"}


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

    def drop(self, items: KeyPath, index: int, length: int) -> None:
        self._items.setdefault(items, list(range(length))).pop(index)


@dataclass(frozen=True)
class Shaped(Generic[Model]):
    """The model of what is right, and what is wrong with the rest."""

    spec: Model
    problems: tuple[Problem, ...]
    renumbering: Renumbering


def shape(
    model: type[Model], tree: Tree, opaque: frozenset[KeyPath], stand_ins: dict[str, Tree]
) -> Shaped[Model]:
    """Validate a tree; `stand_ins` fill in for required top-level keys that are not right.

    Only the first look at the tree makes problems: what later ones find follows from what
    was taken out.
    """
    try:
        return Shaped(model.model_validate(tree), (), Renumbering())
    except ValidationError as failure:
        errors = _explained(model, failure)
    surgeon = _Surgeon(tree, opaque, stand_ins)
    problems = tuple(
        replace(one.problem, path=surgeon.written(one.problem.path))
        for one in _without_echoes(errors)
        if not surgeon.is_opaque(one.problem.path)
    )
    for _ in range(_ROUNDS):
        surgeon.operate(errors)
        try:
            return Shaped(model.model_validate(surgeon.tree), problems, surgeon.renumbering)
        except ValidationError as failure:
            errors = _explained(model, failure)
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
    """Takes wrong parts out of a copy of the tree, and replaces opaque ones by plausible ones."""

    def __init__(self, tree: Tree, opaque: frozenset[KeyPath], stand_ins: dict[str, Tree]) -> None:
        self.tree = _copy(tree)
        self.renumbering = Renumbering()
        self._opaque = opaque
        self._stand_ins = stand_ins
        self._replaced: set[KeyPath] = set()

    def is_opaque(self, path: KeyPath) -> bool:
        return is_within(self.renumbering.original(path), self._opaque)

    def operate(self, errors: list[_Error]) -> None:
        """Change what each error points at. From the back, so that indexes stay true."""
        wrong: dict[KeyPath, _Error] = {}
        for error in errors:
            wrong.setdefault(self._target(error), error)
        for path in sorted(wrong, reverse=True):
            self._treat(path, wrong[path])

    def _target(self, error: _Error) -> KeyPath:
        path = error.problem.path
        kind = error.details["type"]
        if kind == "missing" and len(path) == 1:
            return path
        if kind == "missing" or kind.startswith("union_tag"):
            return path[:-1]
        return self.written(path)

    def written(self, path: KeyPath) -> KeyPath:
        """Cut a path where the user wrote a name that is short for a mapping."""
        here = self.tree
        for length, step in enumerate(path):
            if not isinstance(here, dict | list):
                return path[:length]
            here = here.get(step) if isinstance(here, dict) else here[int(step)]
        return path

    def _treat(self, path: KeyPath, error: _Error) -> None:
        original = self.renumbering.original(path)
        if len(path) == 1 and error.details["type"] == "missing":
            self.tree[path[0]] = self._stand_ins[str(path[0])]
        elif original in self._opaque and original not in self._replaced:
            self._replaced.add(original)
            self._replace(path, _plausible(error.details))
        else:
            self._remove(path)

    def _replace(self, path: KeyPath, value: str | None) -> None:
        if value is None:
            self._remove(path)
        else:
            self._parent(path)[path[-1]] = value

    def _remove(self, path: KeyPath) -> None:
        parent = self._parent(path)
        if isinstance(parent, list):
            index = int(path[-1])
            self.renumbering.drop(self.renumbering.original(path[:-1]), index, len(parent))
            parent.pop(index)
        else:
            parent.pop(path[-1], None)

    def _parent(self, path: KeyPath) -> Any:
        here = self.tree
        for step in path[:-1]:
            here = here[step]
        return here


def is_within(path: KeyPath, places: frozenset[KeyPath]) -> bool:
    """Tell whether a path is one of the places or lies inside one."""
    return bool(places) and any(path[:length] in places for length in range(len(path) + 1))


def _plausible(error: ErrorDetails) -> str | None:
    """Something that could stand where a value is not known yet."""
    if error["type"] == "floe_value":
        return str(error["ctx"]["example"]) or None
    if error["type"] == "literal_error":
        return expected_words(error)[0]
    return _STAND_INS.get(error["type"])


def _copy(tree: Tree) -> Tree:
    if isinstance(tree, dict):
        return {key: _copy(value) for key, value in tree.items()}
    return [_copy(item) for item in tree] if isinstance(tree, list) else tree
