"""Rules for files that a project refers to: they exist, inside the project's folder."""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from floe.spec.findings import KeyPath, Problem
from floe.spec.nearby import suggest
from floe.spec.rules.draft import Draft
from floe.spec.sql_files import names_file


def missing_file(draft: Draft, path: KeyPath, sql: str) -> Iterator[Problem]:
    """SQL that names a file must name one that exists."""
    if not names_file(sql):
        return
    file = draft.root / sql
    if not file.resolve().is_relative_to(draft.root.resolve()):
        message = f"'{sql}' leads out of the project's folder"
        yield Problem(path, message, "Keep SQL files inside it.")
    elif not file.is_file():
        hint = suggest(sql, _sql_files(draft.root), "Write it, or check the path.")
        yield Problem(path, f"there is no file '{sql}'", hint)


@lru_cache(maxsize=8)
def _sql_files(root: Path) -> tuple[str, ...]:
    hidden = (".floe", ".git", ".venv")
    files = (file.relative_to(root) for file in root.rglob("*.sql"))
    return tuple(file.as_posix() for file in files if file.parts[0] not in hidden)
