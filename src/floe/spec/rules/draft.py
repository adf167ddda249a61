"""What the rules look at: the models of what is right so far, and what was written."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from floe.spec.anatomy import known_keys
from floe.spec.base import SpecModel
from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import Suggestions, nearest
from floe.spec.project import ProjectSpec

_SECTIONS: dict[str, KeyPath] = {
    "calendar": ("calendars",),
    "dataset": ("datasets",),
    "job": ("orchestration", "jobs"),
    "partitions": ("orchestration", "partitions"),
}


@dataclass(frozen=True)
class Draft:
    """A project under examination."""

    spec: ProjectSpec
    tree: Mapping[str, Any]
    """The tree as it was written: it also has what had to be left out of the models."""
    root: Path
    suggestions: Suggestions = field(default_factory=Suggestions)

    def names(self, *section: str) -> Collection[str]:
        """Return the names that a section declares, right or wrong."""
        return self.written(section).keys()

    def written(self, path: KeyPath) -> Mapping[str, Any]:
        """Return the mapping that stands at a path, empty when there is none."""
        here: Any = self.tree
        for step in path:
            here = here.get(step) if isinstance(here, dict) else None
        return here if isinstance(here, dict) else {}

    def lacks(self, path: KeyPath, model: type[SpecModel], *keys: str) -> bool:
        """Tell whether none of some keys was written at a path, not even mistyped.

        A mistyped key is a finding already: that its right spelling is missing is no second.
        """
        written, known = self.written(path).keys(), known_keys(model).keys()
        mistyped = {nearest(key, known) for key in written - known}
        return not set(keys) & (written | mistyped)

    def columns(self, dataset: str) -> tuple[str, ...]:
        """Return the columns of a dataset's schema, empty when it has none or one is unclear."""
        schema = self.written(("datasets", dataset)).get("schema")
        listed = schema if isinstance(schema, list) else []
        columns = [column for column in listed if column is not None]
        names = [one.get("name") if isinstance(one, dict) else None for one in columns]
        clear = all(isinstance(name, str) and "${" not in name for name in names)
        return tuple(str(name) for name in names) if clear else ()

    def length(self, path: KeyPath) -> int:
        """Return how many items were written in the list at a path."""
        items = self.written(path[:-1]).get(str(path[-1]))
        return sum(item is not None for item in items) if isinstance(items, list) else 0

    def unknown(
        self, path: KeyPath, what: str, name: str, known: Collection[str], otherwise: str
    ) -> Problem:
        """Say that a name refers to nothing, and what was probably meant.

        That rests on the whole section of such things: while it is not right, nobody knows.
        """
        hint = self.suggestions.suggest(name, known, otherwise)
        also = (_SECTIONS[what],) if what in _SECTIONS else ()
        return Problem(path, f"no {what} named '{name}'", hint, also=also)
