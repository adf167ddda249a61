"""Which files a loaded project stands on, and whether they are still what they were."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

Marks = dict[Path, tuple[int, int]]
SUFFIXES = (".py", ".sql", ".yaml", ".yml")
# What is made, not written: dbt writes into target whenever it runs.
MADE = frozenset({"__pycache__", "node_modules", "target", "dbt_packages", "logs"})


def mark_sources(root: Path) -> Marks:
    """Note size and time of all that people write in a project.

    Not only what is loaded: a module that could not be is the one that is mended next.
    """
    written: list[Path] = []
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in MADE and not name.startswith(".")]
        written += [Path(folder, name) for name in files if name.endswith(SUFFIXES)]
    return mark_files(written)


def mark_files(files: Iterable[Path]) -> Marks:
    """Note size and time of files; those that are not there are left out."""
    marks: Marks = {}
    for file in files:
        with suppress(OSError):
            found = file.stat()
            marks[file] = (found.st_mtime_ns, found.st_size)
    return marks
