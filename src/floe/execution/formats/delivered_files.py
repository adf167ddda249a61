"""List the files of a delivery, and detect entries that floe must not open.

Folders that other systems write to can contain anything: links that point outside, pipes, names
that are not valid text. Such an entry is never opened; it is reported as a problem.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cached_property
from glob import has_magic
from pathlib import Path

from floe.execution.formats.storage import is_hidden

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISCHR, "a device"),
)


class DanglingLinkError(Exception):
    """A symbolic link points to a missing file, which may still arrive."""


@dataclass(frozen=True)
class StorageBoundary:
    """Limits of a delivery: inside the storage root, outside floe's state folder."""

    root: Path
    state: Path
    _safe_folders: dict[Path, bool] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _resolved(self) -> tuple[Path, Path]:
        return self.root.resolve(), self.state.resolve()

    def problem(self, path: Path, name: str) -> str:
        """Return why an entry cannot be part of a delivery, or an empty string."""
        if problem := _name_problem(name) or self.link_problem(path, name):
            return problem
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return ""
        kind = next((label for is_kind, label in _KINDS if is_kind(mode)), "not a file")
        return f"{name} is {kind}, not a regular file"

    def link_problem(self, path: Path, name: str) -> str:
        """Return how a path leaves the storage root and by which link, or an empty string."""
        if not path.is_symlink() and self._is_safe(path.parent):
            return ""
        try:
            escape = self._escape_reason(path.resolve(strict=True))
        except FileNotFoundError:
            last = self._link(path) or path
            message = f"the symbolic link {last.name} points to {_target(last)}"
            raise DanglingLinkError(f"{message}, which does not exist") from None
        except RuntimeError:
            # Path.resolve raises RuntimeError for a loop of links.
            return f"{name}: its symbolic links form a loop"
        link = self._link(path)
        if not escape or link is None:
            return escape and f"{name} {escape}"
        owner = "" if link == path else f"{name}: "
        return (
            f"{owner}the symbolic link {link.relative_to(self.root)} {escape}, to {_target(link)}"
        )

    def _is_safe(self, folder: Path) -> bool:
        """Tell whether a folder is inside the limits; cached, as files share folders."""
        if folder not in self._safe_folders:
            self._safe_folders[folder] = not self._escape_reason(folder.resolve())
        return self._safe_folders[folder]

    def _escape_reason(self, target: Path) -> str:
        root, state = self._resolved
        if not target.is_relative_to(root):
            return "points outside the storage root"
        return "points into floe's state folder" if target.is_relative_to(state) else ""

    def _link(self, path: Path) -> Path | None:
        """Return the innermost symbolic link of a path below the root, if any."""
        parts = (part for part in (path, *path.parents) if part.is_relative_to(self.root))
        return next((part for part in parts if part.is_symlink()), None)


def _target(link: Path) -> str:
    return str(link.readlink() if link.is_symlink() else link)


def _name_problem(name: str) -> str:
    try:
        name.encode()
    except UnicodeEncodeError:
        return f"the file name '{name}' is not valid UTF-8"
    if any(ord(letter) < 32 or ord(letter) == 127 for letter in name):
        return f"the file name '{name}' contains a control character"
    return ""


def matching(pattern: Path, folder: Path, boundary: StorageBoundary) -> list[Path]:
    """Return the entries that match a pattern, sorted; a folder matches all below it.

    `folder` is the deepest folder of the pattern without wildcards.
    """
    parts = pattern.relative_to(folder).parts
    paths = set(_Listing(boundary).entries(folder, parts))
    return sorted(path for path in paths if not is_hidden(path.name))


@dataclass(frozen=True)
class _Listing:
    boundary: StorageBoundary

    def entries(self, path: Path, parts: Sequence[str]) -> Iterator[Path]:
        if self._leads_outside(path):
            # Do not look behind the link; the link itself is reported.
            yield path
        elif not parts:
            yield from self._below(path) if path.is_dir() else [path]
        elif path.is_dir():
            yield from self._matches(path, parts)

    def _matches(self, folder: Path, parts: Sequence[str]) -> Iterator[Path]:
        first, rest = parts[0], parts[1:]
        if first == "**":
            yield from self.entries(folder, rest)
            for path in _children(folder):
                if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                    yield from self.entries(path, parts)
        elif not has_magic(first):
            path = folder / first
            if os.path.lexists(path):
                yield from self.entries(path, rest)
        else:
            for path in _children(folder):
                hidden = path.name.startswith(".") and not first.startswith(".")
                if fnmatchcase(path.name, first) and not hidden:
                    yield from self.entries(path, rest)

    def _below(self, folder: Path) -> Iterator[Path]:
        """Yield all entries below a folder; skip links to other folders of the storage."""
        for path in _children(folder):
            if is_hidden(path.name):
                continue
            if not path.is_dir() or self._leads_outside(path):
                yield path
            elif not path.is_symlink():
                yield from self._below(path)

    def _leads_outside(self, path: Path) -> bool:
        if not path.is_symlink():
            return False
        try:
            return bool(self.boundary.link_problem(path, path.name))
        except DanglingLinkError:
            return True


def _children(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries)
