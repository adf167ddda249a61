"""Which files a delivery is made of, and what of it floe does not touch.

Folders that others write to can hold anything: links to elsewhere, pipes, names that are not
text. Such an entry is never opened. It becomes the problem of its delivery.
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


class LinkWithoutTargetError(Exception):
    """A symbolic link leads to a file that is not there. It may still come."""


@dataclass(frozen=True)
class Confines:
    """The storage root that a dataset's files must lie in, and floe's own folder, which is shut."""

    root: Path
    state: Path
    _known: dict[Path, bool] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _resolved(self) -> tuple[Path, Path]:
        return self.root.resolve(), self.state.resolve()

    def problem(self, path: Path, name: str) -> str:
        """Say why an entry cannot be taken as a file of a delivery; empty when it can."""
        if wrong := _name_problem(name):
            return wrong
        if wrong := self.link_problem(path, name):
            return wrong
        mode = path.stat().st_mode
        if stat.S_ISREG(mode):
            return ""
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "not a file")
        return f"{name} is {kind}, not a regular file"

    def link_problem(self, path: Path, name: str) -> str:
        """Say whether a path leads out of the storage root, and by which link."""
        if not path.is_symlink() and self._is_safe(path.parent):
            return ""
        try:
            where = self._way_out(path.resolve(strict=True))
        except FileNotFoundError:
            last = self._link(path) or path
            shown = f"the symbolic link {last.name} leads to {_target(last)}"
            raise LinkWithoutTargetError(f"{shown}, which does not exist") from None
        except RuntimeError:
            # So Python calls a loop.
            return f"{name}: its symbolic links lead in a circle"
        link = self._link(path)
        if not where or link is None:
            return where and f"{name} {where}"
        owner = "" if link == path else f"{name}: "
        return f"{owner}the symbolic link {link.relative_to(self.root)} {where}, to {_target(link)}"

    def _is_safe(self, folder: Path) -> bool:
        """Tell whether a folder lies in the storage. Many files share one, so it is kept."""
        if folder not in self._known:
            self._known[folder] = not self._way_out(folder.resolve())
        return self._known[folder]

    def _way_out(self, target: Path) -> str:
        root, state = self._resolved
        if not target.is_relative_to(root):
            return "leads out of the storage root"
        return "leads into floe's own folder" if target.is_relative_to(state) else ""

    def _link(self, path: Path) -> Path | None:
        """Return the last link on the way to a path."""
        below = [one for one in (path, *path.parents) if one.is_relative_to(self.root)]
        return next((one for one in below if one.is_symlink()), None)


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


def matching(pattern: Path, folder: Path, confines: Confines) -> list[Path]:
    """Return the entries that a pattern stands for, in order; a folder stands for all below it.

    `folder` is the deepest folder of the pattern without wildcards.
    """
    parts = pattern.relative_to(folder).parts
    found = set(_Listing(confines).entries(folder, parts))
    return sorted(path for path in found if not is_hidden(path.name))


@dataclass(frozen=True)
class _Listing:
    confines: Confines

    def entries(self, path: Path, parts: Sequence[str]) -> Iterator[Path]:
        if self._is_foreign(path):
            # What lies behind it is not looked at; the link itself is the problem.
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
        """Yield all entries below a folder; links to other folders of the storage are skipped."""
        for path in _children(folder):
            if is_hidden(path.name):
                continue
            if not path.is_dir() or self._is_foreign(path):
                yield path
            elif not path.is_symlink():
                yield from self._below(path)

    def _is_foreign(self, path: Path) -> bool:
        if not path.is_symlink():
            return False
        try:
            return bool(self.confines.link_problem(path, path.name))
        except LinkWithoutTargetError:
            return True


def _children(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        return sorted(folder / entry.name for entry in entries)
