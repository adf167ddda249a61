"""What lies in a watched folder: one listing a look, on this machine or behind a URL."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Protocol

Wanted = Callable[[str], bool]
"""Tells by its path below the folder whether a file counts."""

# What file systems call the mark of a file that changes when it is replaced.
_STAMPS = ("ETag", "etag", "md5Hash", "generation", "mtime", "LastModified", "last_modified")
_STAMPS_TOO = ("modified", "updated", "created")


@dataclass(frozen=True)
class Found:
    """A file as a look found it."""

    path: str
    """Its path below the folder."""
    url: str
    """Where it is, as a reader needs it."""
    size: int
    stamp: str
    """Changes when the file is replaced."""

    @cached_property
    def mark(self) -> str:
        """Return a short mark of the file in this state: another state has another mark."""
        text = f"{self.path}\0{self.size}\0{self.stamp}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Folder(Protocol):
    """A folder that is looked into. What cannot be read raises OSError."""

    settling: ClassVar[float | None]
    """After how many seconds a second look is taken at what is new; None leaves it to the next."""

    def look(self, wanted: Wanted, deep: bool) -> Iterator[Found]:
        """Yield the files that count, with those of folders below when it goes deep."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder on this machine."""

    settling: ClassVar[float | None] = 2.0
    root: Path

    def look(self, wanted: Wanted, deep: bool) -> Iterator[Found]:
        """Only files that count are asked for their size and time."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            with os.scandir(self.root / prefix) as entries:
                for entry in entries:
                    path = f"{prefix}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders += [f"{path}/"] if deep else []
                    elif wanted(path):
                        yield from self._found(path, entry)

    def _found(self, path: str, entry: "os.DirEntry[str]") -> Iterator[Found]:
        # It may be gone since the folder was read, or be a link to nothing or to itself. Such an
        # entry has not arrived, and must not hide those that have.
        with suppress(OSError):
            if entry.is_file():
                stat = entry.stat()
                yield Found(path, str(self.root / path), stat.st_size, str(stat.st_mtime_ns))


@dataclass(frozen=True)
class RemoteFolder:
    """A folder behind a URL, by fsspec."""

    # A listing can be long and cost money.
    settling: ClassVar[float | None] = None
    url: str

    def look(self, wanted: Wanted, deep: bool) -> Iterator[Found]:
        """Ask for everything at once: sizes and times come with the listing."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        files, root = url_to_fs(self.url)
        # Others write there: what a listing said before is not true for ever.
        files.invalidate_cache()
        listing: Sequence[Mapping[str, Any]] = ()
        if deep:
            listing = list(files.find(root, detail=True).values())
        # A folder that does not exist raises here; looked for in depth, it is just empty.
        for info in listing or files.ls(root, detail=True):
            name = str(info["name"])
            path = name.removeprefix(root.rstrip("/")).lstrip("/")
            if info["type"] == "file" and wanted(path):
                url = files.unstrip_protocol(name)
                yield Found(path, url, int(info["size"] or 0), _stamp(info))


def _stamp(info: Mapping[str, Any]) -> str:
    marks = (info.get(key) for key in (*_STAMPS, *_STAMPS_TOO))
    return next((str(mark) for mark in marks if mark is not None), "")


def shown(location: str) -> str:
    """Write a path or URL as it may be shown and stored: without who logs in, as UTF-8."""
    text = os.fsencode(location).decode(errors="backslashreplace")
    return re.sub(r"://[^/@]*@", "://***@", text)


def matches_glob(pattern: str, path: str) -> bool:
    """Tell whether a path matches: * and ? stay within a folder, ** is any number of them.

    As in a shell, what begins with a dot is matched only by a pattern that says so.
    """
    return _match(pattern.split("/"), path.split("/"))


def _match(patterns: Sequence[str], names: Sequence[str]) -> bool:
    if not patterns or not names:
        return not patterns and not names
    if patterns[0] == "**":
        if len(patterns) == 1:
            return not any(name.startswith(".") for name in names)
        rest = _match(patterns[1:], names)
        return rest or (not names[0].startswith(".") and _match(patterns, names[1:]))
    hidden = names[0].startswith(".") and not patterns[0].startswith(".")
    return not hidden and fnmatchcase(names[0], patterns[0]) and _match(patterns[1:], names[1:])
