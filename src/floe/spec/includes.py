"""Include files in a section: `datasets: [datasets/*.yaml]` or `include:`.

An included file contains the same as the section: a mapping of names. Patterns are relative
to the project folder and must not match files outside it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from floe.spec.document import EXTENSION, Document, Origin, YamlSource, display_path, read_yaml
from floe.spec.findings import Finding, KeyPath, Problem, key_text
from floe.spec.names import check_glob
from floe.spec.variables import VariableSyntaxError, substitute
from floe.spec.yaml_tree import Tree

INCLUDE = "include"
Pattern = tuple[KeyPath, Tree]


def expand_includes(document: Document, root: Path, sections: Iterable[tuple[str, ...]]) -> None:
    """Merge the included files of all sections into the document's tree."""
    for section in sections:
        _Section(document, root.resolve(), section).expand()


def included_files(
    document: Document, root: Path, sections: Iterable[tuple[str, ...]]
) -> Iterator[Path]:
    """Yield the included files of all sections, without reading them."""
    for section in sections:
        yield from _Section(document, root.resolve(), section).files()


@dataclass
class _Section:
    """A section that maps names to definitions."""

    document: Document
    root: Path
    path: tuple[str, ...]

    def expand(self) -> None:
        parent, name = self._parent(), self.path[-1]
        if parent is None:
            return
        patterns, merged = self._split(parent[name])
        for file in self._files(patterns):
            self._add_file(file, merged)
        parent[name] = {key: {} if value is None else value for key, value in merged.items()}

    def files(self) -> Iterable[Path]:
        parent = self._parent()
        return [] if parent is None else self._files(self._split(parent[self.path[-1]])[0])

    def _parent(self) -> dict[str, Tree] | None:
        """Return the mapping that contains the section, or None if there is no valid one."""
        parent: Any = self.document.tree
        for step in self.path[:-1]:
            parent = parent.get(step) if isinstance(parent, dict) else None
        if not isinstance(parent, dict):
            return None
        return parent if isinstance(parent.get(self.path[-1], ""), dict | list | None) else None

    def _files(self, patterns: list[Pattern]) -> Iterable[Path]:
        """Return the files that match any of the patterns, each once."""
        files = (file for path, pattern in patterns for file in self._matches(path, pattern))
        return dict.fromkeys(files)

    def _split(self, written: Tree) -> tuple[list[Pattern], dict[str, Tree]]:
        """Separate the patterns of files from inline declarations."""
        if isinstance(written, list):
            return self._patterns(self.path, written), {}
        own = {key: value for key, value in (written or {}).items() if key != INCLUDE}
        if INCLUDE not in (written or {}):
            return [], own
        return self._patterns((*self.path, INCLUDE), written[INCLUDE]), own

    def _patterns(self, path: KeyPath, written: Tree) -> list[Pattern]:
        variables = self.document.variables
        variables[:] = [variable for variable in variables if variable[: len(path)] != path]
        if isinstance(written, list):
            items = enumerate(written)
            return [((*path, index), item) for index, item in items if item is not None]
        return [] if written is None else [(path, written)]

    def _matches(self, path: KeyPath, pattern: Tree) -> Iterator[Path]:
        text = self._checked(path, pattern)
        if text is None:
            return
        files = [file for file in sorted(self.root.glob(text)) if file.is_file()]
        if not files:
            self._report(
                path, f"'{text}' matches no file", "Check the pattern, or create the file."
            )
        for file in files:
            if file.resolve().is_relative_to(self.root):
                yield file
            else:
                message = f"{display_path(self.root, file)} is outside the project folder"
                self._report(path, message, "Copy the file instead of linking to it.")

    def _checked(self, path: KeyPath, pattern: Tree) -> str | None:
        """Return a valid pattern with the defaults of its variables, or None.

        The environment is ignored, so that a project has the same files everywhere.
        """
        if not isinstance(pattern, str):
            self._report(path, "an include must be a pattern", "Write it as datasets/*.yaml.")
            return None
        try:
            resolved = substitute(pattern, lambda _: None)
            check_glob(resolved.text)
        except VariableSyntaxError as error:
            self._report(path, str(error), error.hint)
            return None
        except PydanticCustomError as error:
            words = error.context or {}
            self._report(path, str(words["message"]), str(words["hint"]))
            return None
        if resolved.missing:
            message = f"the variable {resolved.missing[0]} has no default"
            self._report(
                path, message, "Add a default, because includes are resolved at compile time."
            )
            return None
        if Path(resolved.text).is_absolute() or ".." in Path(resolved.text).parts:
            message = f"'{resolved.text}' is outside the project folder"
            self._report(path, message, "Use a path relative to the project folder.")
            return None
        return resolved.text

    def _add_file(self, file: Path, merged: dict[str, Tree]) -> None:
        """Add the declarations of an included file."""
        source = read_yaml(file, display_path(self.root, file))
        self.document.sources.append(source)
        self.document.findings += source.findings
        if not source.is_readable:
            self.document.incomplete.add(self.path)
        elif isinstance(source.tree, dict):
            self._merge(source, merged)
        elif source.tree is not None:
            message = "an included file must be a mapping of names"
            hint = f"Write the same content as under '{self.path[-1]}'."
            self.document.findings.append(Finding(source.name, 1, "", message, hint))

    def _merge(self, source: YamlSource, merged: dict[str, Tree]) -> None:
        added = set()
        for name, value in source.tree.items():
            origin = Origin(source, (name,))
            if name.startswith(EXTENSION):
                continue
            if name in merged:
                self._report_twice(origin, name)
            else:
                merged[name] = value
                added.add(name)
                self.document.origins[(*self.path, name)] = origin
        variables = [path for path in source.variables if path[0] in added]
        self.document.variables += [(*self.path, *path) for path in variables]

    def _report_twice(self, again: Origin, name: str) -> None:
        path = (*self.path, name)
        first = self.document.find_line(path, at_key=True)
        second = again.find_line((), at_key=True)
        message = f"'{name}' is already declared at {first.file}:{first.line}"
        hint = "Remove or rename one of them."
        self.document.findings.append(
            Finding(second.file, second.line, key_text(path), message, hint)
        )

    def _report(self, path: KeyPath, message: str, hint: str) -> None:
        """Report an invalid pattern, and mark the section as incomplete."""
        self.document.incomplete.add(self.path)
        self.document.report(Problem(path, message, hint))
