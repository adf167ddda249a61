"""Find what was delivered: the files that match, and a fingerprint that only content changes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from floe.execution.formats.checksums import file_checksum
from floe.execution.formats.contract import Delivery, VersionPlace, VersionUnreadableError
from floe.execution.formats.locations import delivery_pattern, stable_path
from floe.execution.formats.manifests.control import parse_control
from floe.execution.formats.manifests.errors import DeliveryIncompleteError
from floe.execution.formats.manifests.json_manifest import parse_json
from floe.execution.formats.manifests.promise import Promise, PromiseError
from floe.execution.formats.storage import data_files, is_hidden
from floe.execution.site import Site
from floe.spec.datasets import ControlManifest, JsonManifest

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class DeliveredFile:
    """One file of a delivery, as the catalog keeps it with the version."""

    name: str
    size: int
    mtime_ns: int
    sha256: str


def find_delivery(site: Site, place: VersionPlace) -> Delivery | None:
    """Look for the files of a version that others deliver."""
    pattern = delivery_pattern(site, place)
    folder = literal_folder(pattern)
    manifest = manifest_file(site, place, folder)
    paths = [path for path in _matching(pattern) if path != manifest]
    if not paths:
        return None
    known = {file["name"]: file for file in place.details.get("files", ())}
    files = [_describe(place, path, folder, known) for path in paths]
    return Delivery(
        path=str(pattern),
        fingerprint=fingerprint_of(files, _promise_text(place, manifest)),
        size=sum(file.size for file in files),
        details={
            "delivered": True,
            "folder": str(folder),
            "files": [{**asdict(file), "path": str(folder / file.name)} for file in files],
        },
    )


def literal_folder(pattern: Path) -> Path:
    """Return the deepest folder that every match of a pattern lies in."""
    for folder in (pattern, *pattern.parents):
        if not has_magic(str(folder)) and folder.is_dir():
            return folder
    return pattern.parent


def _matching(pattern: Path) -> list[Path]:
    found: set[Path] = set()
    for match in map(Path, glob(str(pattern), recursive=True)):  # noqa: PTH207
        found.update(data_files(match) if match.is_dir() else [match])
    return sorted(path for path in found if not is_hidden(path.name))


def _describe(
    place: VersionPlace, path: Path, folder: Path, known: Mapping[str, Mapping[str, Any]]
) -> DeliveredFile:
    name = path.relative_to(folder).as_posix()
    before = path.stat()
    file = known.get(name, {})
    same = (file.get("size"), file.get("mtime_ns")) == (before.st_size, before.st_mtime_ns)
    sha256 = str(file["sha256"]) if same and "sha256" in file else file_checksum(path)
    after = path.stat()
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise DeliveryIncompleteError(place.dataset, f"{name} is being written right now.")
    return DeliveredFile(name, after.st_size, after.st_mtime_ns, sha256)


def fingerprint_of(files: Sequence[DeliveredFile], promise: str = "") -> str:
    """Return what changes when content or names change, and not when files are touched.

    What the manifest promises counts too: a delivery that was rejected for a wrong manifest and
    comes again with the right one is a new one.
    """
    lines = sorted(f"{file.name}\0{file.sha256}" for file in files)
    return hashlib.sha256("\n".join([*lines, promise]).encode()).hexdigest()


def manifest_file(site: Site, place: VersionPlace, folder: Path) -> Path | None:
    """Return where the manifest of a version is, or has to come; None without one."""
    manifest = place.spec.manifest
    if isinstance(manifest, JsonManifest) and manifest.path is None:
        return folder / MANIFEST
    if isinstance(manifest, JsonManifest | ControlManifest):
        return stable_path(site, place, manifest.path or MANIFEST)
    return None


def read_promise(place: VersionPlace, content: bytes) -> Promise:
    """Read the manifest file of a version."""
    manifest = place.spec.manifest
    if isinstance(manifest, JsonManifest):
        return parse_json(content, manifest)
    if isinstance(manifest, ControlManifest):
        return parse_control(content, manifest)
    return Promise()


def _promise_text(place: VersionPlace, manifest: Path | None) -> str:
    if manifest is None or not manifest.is_file():
        return ""
    content = manifest.read_bytes()
    try:
        return repr(read_promise(place, content))
    except PromiseError:
        return hashlib.sha256(content).hexdigest()


def unchanged_files(place: VersionPlace) -> list[Path]:
    """Return the files of a delivered version; refuse when somebody changed them since."""
    folder = Path(str(place.details["folder"]))
    return [_unchanged(place, folder / file["name"], file) for file in place.details["files"]]


def _unchanged(place: VersionPlace, path: Path, file: Mapping[str, Any]) -> Path:
    if not path.is_file():
        reason = f"{path} was removed after it was delivered."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    found = path.stat()
    same_look = (found.st_size, found.st_mtime_ns) == (file["size"], file["mtime_ns"])
    if not same_look and (found.st_size != file["size"] or file_checksum(path) != file["sha256"]):
        reason = f"{path} was changed after it was delivered."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    return path
