"""List the files of a watched folder, on this machine or behind a URL."""

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
"""Tells by its relative path whether a file is wanted."""

# Names that file systems give to a value that changes when a file is replaced.
_STAMPS = ("ETag", "etag", "md5Hash", "generation", "mtime", "LastModified", "last_modified")
_STAMPS_TOO = ("modified", "updated", "created")


@dataclass(frozen=True)
class FoundFile:
    """A file in a listing."""

    path: str
    """The path relative to the folder."""
    url: str
    """The full path or URL."""
    size: int
    stamp: str
    """Changes when the file is replaced."""

    @cached_property
    def mark(self) -> str:
        """Return a hash of path, size and stamp."""
        text = f"{self.path}\0{self.size}\0{self.stamp}"
        return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class Folder(Protocol):
    """A folder to list. Raises OSError if it cannot be read."""

    recheck_seconds: ClassVar[float | None]
    """Seconds until new files are listed again; None: at the next evaluation."""

    def list_files(self, wanted: Wanted, deep: bool) -> Iterator[FoundFile]:
        """Yield the wanted files; with `deep` also those in subfolders."""


@dataclass(frozen=True)
class LocalFolder:
    """A folder on this machine."""

    recheck_seconds: ClassVar[float | None] = 2.0
    root: Path

    def list_files(self, wanted: Wanted, deep: bool) -> Iterator[FoundFile]:
        """Yield the wanted files; only these are read for size and time."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            with os.scandir(self.root / prefix) as entries:
                for entry in entries:
                    path = f"{prefix}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders += [f"{path}/"] if deep else []
                    elif wanted(path):
                        yield from self._file(path, entry)

    def _file(self, path: str, entry: "os.DirEntry[str]") -> Iterator[FoundFile]:
        # The file may have been deleted meanwhile, or be a broken or circular link. That must not
        # hide the other files.
        with suppress(OSError):
            if entry.is_file():
                stat = entry.stat()
                yield FoundFile(path, str(self.root / path), stat.st_size, str(stat.st_mtime_ns))


@dataclass(frozen=True)
class RemoteFolder:
    """A folder behind a URL, read with fsspec."""

    # No second listing: it can be long and cost money.
    recheck_seconds: ClassVar[float | None] = None
    url: str

    def list_files(self, wanted: Wanted, deep: bool) -> Iterator[FoundFile]:
        """Yield the wanted files from one listing with sizes and times."""
        from fsspec.core import url_to_fs  # type: ignore[import-untyped]

        files, root = url_to_fs(self.url)
        # Other systems write there, so a cached listing may be stale.
        files.invalidate_cache()
        listing: Sequence[Mapping[str, Any]] = ()
        if deep:
            listing = list(files.find(root, detail=True).values())
        # `ls` raises an error for a missing folder; `find` just returns nothing.
        for info in listing or files.ls(root, detail=True):
            name = str(info["name"])
            path = name.removeprefix(root.rstrip("/")).lstrip("/")
            if info["type"] == "file" and wanted(path):
                url = files.unstrip_protocol(name)
                yield FoundFile(path, url, int(info["size"] or 0), _stamp(info))


def _stamp(info: Mapping[str, Any]) -> str:
    marks = (info.get(key) for key in (*_STAMPS, *_STAMPS_TOO))
    return next((str(mark) for mark in marks if mark is not None), "")


def shown(location: str) -> str:
    """Return a path or URL for display and storage: without credentials, as UTF-8."""
    text = os.fsencode(location).decode(errors="backslashreplace")
    return re.sub(r"://[^/@]*@", "://***@", text)


def matches_glob(pattern: str, path: str) -> bool:
    """Tell whether a path matches: * and ? stay within a folder, ** matches any depth.

    As in a shell, only a pattern that starts with a dot matches hidden names.
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
