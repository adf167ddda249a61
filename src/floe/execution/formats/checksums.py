"""Checksums of files, as fingerprints and as manifests give them."""

import hashlib
import zlib
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from floe import clock

CHUNK = 1 << 20
FRESH_SECONDS = 2


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
    """Start a checksum: md5, sha1, sha256, sha512 or crc32."""
    return _Crc32() if kind == "crc32" else hashlib.new(kind, usedforsecurity=False)


def joint_checksum(paths: Iterable[Path], kind: str) -> str:
    """Return the checksum of files as if they were one, in this order."""
    hasher = new_hasher(kind)
    for path in paths:
        with path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                hasher.update(chunk)
    return hasher.hexdigest()


def file_checksum(path: Path, kind: str = "sha256") -> str:
    """Return the checksum of a file, computed once as long as the file stays as it is."""
    found = path.stat()
    changed = max(found.st_mtime, found.st_ctime)
    if clock.now().timestamp() - changed < FRESH_SECONDS:
        # A file system's clock is coarse: a second write at the same tick would not show.
        return joint_checksum([path], kind)
    look = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    return _remembered(path, kind, look)


@lru_cache(maxsize=4096)
def _remembered(path: Path, kind: str, look: tuple[int, ...]) -> str:
    # Size and times are only the key: a sensor that looks again and again reads each file once.
    return joint_checksum([path], kind)


def same_checksum(one: str, other: str) -> bool:
    """Compare two checksums as people write them."""
    return one.strip().lower().lstrip("0") == other.strip().lower().lstrip("0")
