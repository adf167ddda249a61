"""Examine a tree: resolve its variables, validate its shape, find where problems stand."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from floe.spec.base import SpecModel
from floe.spec.document import Located, locate
from floe.spec.findings import Finding, KeyPath, Problem
from floe.spec.shape import Shaped, is_within, shape
from floe.spec.variables import Resolved, resolve_variables
from floe.spec.yaml_tree import Tree

Model = TypeVar("Model", bound=SpecModel)


@dataclass(frozen=True)
class Examination(Generic[Model]):
    """A tree under examination: the model of what is right, and the problems of the rest."""

    document: Located
    resolved: Resolved
    shaped: Shaped[Model]

    @property
    def spec(self) -> Model:
        return self.shaped.spec

    @property
    def tree(self) -> dict[str, Tree]:
        return self.resolved.tree

    def findings(self) -> list[Finding]:
        """Say what is wrong with variables, shape and values."""
        problems = (*self.resolved.problems, *self.shaped.problems)
        return [locate(self.document, problem) for problem in problems]

    def judge(self, problems: Iterable[Problem]) -> list[Finding]:
        """Say what rules found wrong, unless it rests on what is wrong itself or not known yet."""
        findings = []
        unsure = (
            self.resolved.opaque
            | self.shaped.stood_in
            | {problem.path for problem in self.shaped.problems}
        )
        incomplete = set(self.document.incomplete)
        for problem in problems:
            paths = [self.shaped.renumbering.original(p) for p in (problem.path, *problem.also)]
            if incomplete.isdisjoint(paths[1:]) and not any(is_within(p, unsure) for p in paths):
                path = _written(self.tree, paths[0])
                findings.append(locate(self.document, replace(problem, path=path)))
        return findings


def examine(
    model: type[Model], document: Located, environ: Mapping[str, str] | None
) -> Examination[Model]:
    """Resolve and validate a document; without an environment by the variables' defaults."""
    resolved = resolve_variables(document, environ)
    shaped = shape(model, resolved.tree, resolved.opaque)
    return Examination(document, resolved, shaped)


def _written(tree: Tree, path: KeyPath) -> KeyPath:
    """Cut a path where the user wrote a name that is short for a mapping or a list."""
    for length, step in enumerate(path):
        if isinstance(tree, dict):
            tree = tree.get(step, {})
        elif isinstance(tree, list) and isinstance(step, int):
            tree = tree[step]
        else:
            return path[:length]
    return path
