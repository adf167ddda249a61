"""The input of the rules: the model of the valid parts, and the tree as written."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from floe.spec.base import SpecModel
from floe.spec.calendars import built_in_names, is_built_in
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import Suggestions, nearest, suggest
from floe.spec.project import ProjectSpec
from floe.spec.pydantic_errors import known_keys
from floe.spec.sql import is_sql_file

MOST_CYCLES = 20
_SECTIONS: dict[str, KeyPath] = {
    "calendar": ("calendars",),
    "dataset": ("datasets",),
    "job": ("orchestration", "jobs"),
    "partitions": ("orchestration", "partitions"),
}


@dataclass(frozen=True)
class Draft:
    """A project that is being validated."""

    spec: ProjectSpec
    tree: Mapping[str, Any]
    """The tree as written, including parts that are invalid and missing in `spec`."""
    root: Path
    suggestions: Suggestions = field(default_factory=Suggestions)

    def names(self, *section: str) -> Collection[str]:
        """Return the names that a section declares, valid or not."""
        return self.written(section).keys()

    def written(self, path: KeyPath) -> Mapping[str, Any]:
        """Return the mapping at a path, or an empty one."""
        here: Any = self.tree
        for step in path:
            here = here.get(step) if isinstance(here, dict) else None
        return here if isinstance(here, dict) else {}

    def lacks(self, path: KeyPath, model: type[SpecModel], *keys: str) -> bool:
        """Return whether none of some keys was written at a path, not even misspelled.

        A misspelled key is already a finding; it must not also be reported as missing.
        """
        written, known = self.written(path).keys(), known_keys(model).keys()
        mistyped = {nearest(key, known) for key in written - known}
        return not set(keys) & (written | mistyped)

    def columns(self, dataset: str) -> tuple[str, ...]:
        """Return the columns of a dataset; empty if there are none or one is unknown."""
        schema = self.written(("datasets", dataset)).get("schema")
        listed = schema if isinstance(schema, list) else []
        columns = [column for column in listed if column is not None]
        names = [column.get("name") if isinstance(column, dict) else None for column in columns]
        clear = all(isinstance(name, str) and "${" not in name for name in names)
        return tuple(str(name) for name in names) if clear else ()

    def length(self, path: KeyPath) -> int:
        """Return how many items were written in the list at a path."""
        items = self.written(path[:-1]).get(str(path[-1]))
        return sum(item is not None for item in items) if isinstance(items, list) else 0

    def unknown(
        self, path: KeyPath, kind: str, name: str, known: Collection[str], otherwise: str
    ) -> Problem:
        """Return the problem of an unknown name, with a suggestion.

        It depends on the whole section, and is dropped if that section has errors.
        """
        hint = self.suggestions.suggest(name, known, otherwise)
        also = (_SECTIONS[kind],) if kind in _SECTIONS else ()
        return Problem(path, f"no {kind} named '{name}'", hint, also=also)


def unknown_calendar(draft: Draft, path: KeyPath, name: str | None) -> Iterator[Problem]:
    """Find a calendar that is neither declared nor built in."""
    declared = draft.names("calendars")
    if name is None or name in declared or is_built_in(name):
        return
    known = [*declared, *built_in_names()]
    yield draft.unknown(path, "calendar", name, known, "Declare it under calendars.")


def missing_file(draft: Draft, path: KeyPath, sql: str) -> Iterator[Problem]:
    """Find a SQL file that does not exist."""
    if not is_sql_file(sql):
        return
    file = draft.root / sql
    if not file.resolve().is_relative_to(draft.root.resolve()):
        message = f"'{sql}' is outside the project folder"
        yield Problem(path, message, "Move the SQL file into the project folder.")
    elif not file.is_file():
        hint = suggest(sql, _sql_files(draft.root), "Create it, or check the path.")
        yield Problem(path, f"the file '{sql}' does not exist", hint)


@lru_cache(maxsize=8)
def _sql_files(root: Path) -> tuple[str, ...]:
    hidden = (".floe", ".git", ".venv")
    files = (file.relative_to(root) for file in root.rglob("*.sql"))
    return tuple(file.as_posix() for file in files if file.parts[0] not in hidden)


def find_cycles(upstream: Mapping[str, set[str]]) -> list[list[str]]:
    """Return cycles in the direction of the data flow; no two share a node.

    `upstream` maps each node to its upstream nodes. Each cycle starts at its node that comes
    first in the mapping.
    """
    graph = {node: set(before) for node, before in upstream.items()}
    order = {node: index for index, node in enumerate(graph)}
    cycles: list[list[str]] = []
    while len(cycles) < MOST_CYCLES:
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            cycle: list[str] = error.args[1][:-1]
        else:
            break
        start = min(range(len(cycle)), key=lambda index: order[cycle[index]])
        cycles.append(cycle[start:] + cycle[:start])
        for node in cycle:
            graph.pop(node)
        for before in graph.values():
            before.difference_update(cycle)
    return cycles
