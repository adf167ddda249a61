"""Files of datasets on a disk: listed, put in place at once, kept through a power cut, removed."""

import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path
from uuid import uuid4

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec import DatasetSpec

_GLOB = re.compile(r"([{}\[\]*?\\])")


class RemoteStorageError(FloeError):
    """Files are to be kept where floe cannot reach them as files."""

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
    """Return a path as Spark's writers take it, whatever its default file system is."""
    return f"file://{path}"


def spark_paths(paths: Iterable[Path]) -> list[str]:
    """Return paths as Spark's readers take them: they would read brackets as a pattern."""
    return [_GLOB.sub(r"\\\1", to_spark(path)) for path in paths]


def is_hidden(name: str) -> bool:
    """Tell whether Spark passes over files of this name, as everyone here does."""
    return name.startswith(("_", "."))


def data_files(folder: Path) -> list[Path]:
    """Return the files below a folder that hold data, in order."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in found if not _in_hidden(path.relative_to(folder)))


def _in_hidden(relative: Path) -> bool:
    return any(is_hidden(part) for part in relative.parts)


def put_file(path: Path, content: bytes) -> None:
    """Put a file in place at once: whoever looks sees all of it or nothing, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{uuid4().hex}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync_path(path.parent)


def put_link(link: Path, target: Path) -> None:
    """Let a symbolic link point at a folder, from one moment to the next."""
    link.parent.mkdir(parents=True, exist_ok=True)
    draft = link.with_name(f".{link.name}.{uuid4().hex}")
    # Relative, so that it still holds where the disk is mounted under another name.
    draft.symlink_to(os.path.relpath(target, link.parent), target_is_directory=True)
    draft.replace(link)
    sync_path(link.parent)


def sync_path(path: Path) -> None:
    """Wait until a file or a folder is on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def sync_tree(folder: Path) -> None:
    """Wait until a folder and all below it is on the disk."""
    for path in folder.rglob("*"):
        sync_path(path)
    sync_path(folder)
    sync_path(folder.parent)


def tree_size(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def remove_tree(folder: Path) -> int:
    """Remove a folder, if it is there; return the bytes that this frees."""
    if folder.is_symlink() or not folder.is_dir():
        return 0
    freed = tree_size(folder)
    shutil.rmtree(folder)
    return freed
