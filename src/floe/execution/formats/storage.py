"""Files of datasets on disk: list, write atomically and durably, hash, remove."""

import hashlib
import os
import re
import shutil
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from uuid import uuid4

from floe import clock
from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec import DatasetSpec

_GLOB = re.compile(r"([{}\[\]*?\\])")

CHUNK = 1 << 20
FRESH_SECONDS = 2


class RemoteStorageError(FloeError):
    """A storage root is not a folder that floe can access."""

    def __init__(self, profile: str, root: str) -> None:
        super().__init__(
            f"platform.yaml: storage.{profile}.root: {root} is not a folder. Version directories "
            "need a disk that floe and Spark both see: mount it, or keep the dataset as a lake "
            "table (format: iceberg)."
        )


def storage_folder(site: Site, spec: DatasetSpec) -> Path:
    """Return the folder that a dataset's relative locations start from."""
    root = site.storage_root(spec.storage)
    if root.startswith("file://"):
        root = root.removeprefix("file://")
    if "://" in root:
        raise RemoteStorageError(spec.storage or site.spec.storage, root)
    return Path(root)


def to_spark(path: Path) -> str:
    """Return a path for Spark's writers, independent of its default file system."""
    return f"file://{path}"


def spark_paths(paths: Iterable[Path]) -> list[str]:
    """Return paths for Spark's readers, with pattern characters escaped."""
    return [_GLOB.sub(r"\\\1", to_spark(path)) for path in paths]


def is_hidden(name: str) -> bool:
    """Tell whether Spark, and therefore floe, ignores files of this name."""
    return name.startswith(("_", "."))


def data_files(folder: Path) -> list[Path]:
    """Return the data files below a folder, sorted."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in files if not _in_hidden(path.relative_to(folder)))


def _in_hidden(relative: Path) -> bool:
    return any(is_hidden(part) for part in relative.parts)


def put_file(path: Path, content: bytes) -> None:
    """Write a file atomically and durably: readers never see half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_path(path.parent)


def put_link(link: Path, target: Path) -> None:
    """Point a symbolic link at a folder, atomically."""
    link.parent.mkdir(parents=True, exist_ok=True)
    draft = link.with_name(f".{link.name}.{uuid4().hex}")
    # Relative, so the link still works where the disk is mounted under another path.
    draft.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    draft.replace(link)
    sync_path(link.parent)


def sync_path(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and everything below it is on the disk."""
    for path in folder.rglob("*"):
        sync_path(path)
    sync_path(folder)
    sync_path(folder.parent)


def tree_size(folder: Path) -> int:
    """Return the total size in bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def remove_tree(folder: Path) -> int:
    """Remove a folder if it exists; return the bytes freed."""
    if folder.is_symlink() or not folder.is_dir():
        return 0
    freed = tree_size(folder)
    shutil.rmtree(folder)
    return freed


class Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


class _Crc32:
    def __init__(self) -> None:
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = zlib.crc32(data, self._value)

    def hexdigest(self) -> str:
        return f"{self._value:08x}"


def new_hasher(kind: str) -> Hasher:
    """Return a hasher for md5, sha1, sha256, sha512 or crc32."""
    return _Crc32() if kind == "crc32" else hashlib.new(kind, usedforsecurity=False)


def joint_checksum(paths: Iterable[Path], kind: str) -> str:
    """Return the checksum of the concatenated files, in the given order."""
    hasher = new_hasher(kind)
    for path in paths:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                hasher.update(chunk)
    return hasher.hexdigest()


def file_checksum(path: Path, kind: str = "sha256") -> str:
    """Return the checksum of a file, cached until the file changes."""
    status = path.stat()
    changed = max(status.st_mtime, status.st_ctime)
    if clock.now().timestamp() - changed < FRESH_SECONDS:
        # File system clocks are coarse: a second write within the same tick would go unnoticed.
        return joint_checksum([path], kind)
    cache_key = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return _cached_checksum(path, kind, cache_key)


@lru_cache(maxsize=4096)
def _cached_checksum(path: Path, kind: str, cache_key: tuple[int, ...]) -> str:
    # Sensors ask repeatedly; each file is read once.
    return joint_checksum([path], kind)


def same_checksum(first: str, second: str) -> bool:
    """Compare two checksums; ignores case, blanks and leading zeros."""
    return first.strip().lower().lstrip("0") == second.strip().lower().lstrip("0")
