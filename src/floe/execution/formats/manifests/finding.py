"""Find what was delivered: the files that match, and a fingerprint that only content changes."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import has_magic
from pathlib import Path
from typing import Any

from floe.execution.formats.checksums import file_checksum
from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    VersionPlace,
    VersionUnreadableError,
)
from floe.execution.formats.locations import delivery_pattern, stable_path
from floe.execution.formats.manifests.control import parse_control
from floe.execution.formats.manifests.json_manifest import parse_json
from floe.execution.formats.manifests.listing import Confines, LinkWithoutTargetError, matching
from floe.execution.formats.manifests.promise import Promise, PromiseError
from floe.execution.formats.storage import storage_folder
from floe.execution.site import Site
from floe.spec.datasets import ControlManifest, JsonManifest

MANIFEST = "manifest.json"
LARGEST_MANIFEST = 64 << 20


@dataclass(frozen=True)
class DeliveredFile:
    """One file of a delivery, as the catalog keeps it with the version."""

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int
    """When it changed last by the file system's own clock: a writer cannot set it back."""
    sha256: str


def _look(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _known_look(file: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return file.get("size"), file.get("mtime_ns"), file.get("ctime_ns")


def find_delivery(site: Site, place: VersionPlace) -> Delivery | None:
    """Look for the files of a version that others deliver."""
    pattern = delivery_pattern(site, place)
    folder = literal_folder(pattern)
    if not folder.is_dir():
        return None
    confines = confines_of(site, place)
    manifest = manifest_file(site, place, folder)
    paths = [path for path in matching(pattern, folder, confines) if path != manifest]
    if not paths:
        return None
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    checked = {**names, **({} if manifest is None else _manifest_name(manifest))}
    problems = {path: _problem(place, confines, path, name) for path, name in checked.items()}
    sound = [path for path in paths if not problems[path]]
    known = {file["name"]: file for file in place.details.get("files", ())}
    files = [_describe(place, path, names[path], known) for path in sound]
    problem = next(filter(None, problems.values()), "")
    promise = "" if problem else _promise_text(place, manifest)
    return Delivery(
        path=str(pattern),
        fingerprint=fingerprint_of(files, promise, [text for text in problems.values() if text]),
        size=sum(file.size for file in files),
        details={
            "delivered": True,
            "folder": str(folder),
            "files": [{**asdict(file), "path": str(folder / file.name)} for file in files],
        },
        problem=problem,
    )


def confines_of(site: Site, place: VersionPlace) -> Confines:
    """Return what the files of a dataset must not lead out of."""
    return Confines(storage_folder(site, place.spec), site.state_dir)


def _manifest_name(manifest: Path) -> dict[Path, str]:
    return {manifest: manifest.name} if os.path.lexists(manifest) else {}


def _problem(place: VersionPlace, confines: Confines, path: Path, name: str) -> str:
    try:
        return confines.problem(path, name)
    except LinkWithoutTargetError as error:
        raise DeliveryIncompleteError(place.dataset, str(error)) from None


def literal_folder(pattern: Path) -> Path:
    """Return the deepest folder that every match of a pattern lies in."""
    for folder in (pattern, *pattern.parents):
        if not has_magic(str(folder)) and folder.is_dir():
            return folder
    return pattern.parent


def _describe(
    place: VersionPlace, path: Path, name: str, known: Mapping[str, Mapping[str, Any]]
) -> DeliveredFile:
    before = _look(path.stat())
    file = known.get(name, {})
    same = _known_look(file) == before
    sha256 = str(file["sha256"]) if same and "sha256" in file else file_checksum(path)
    if _look(path.stat()) != before:
        raise DeliveryIncompleteError(place.dataset, f"{name} is being written right now.")
    return DeliveredFile(name, *before, sha256)


def fingerprint_of(
    files: Sequence[DeliveredFile], promise: str = "", problems: Sequence[str] = ()
) -> str:
    """Return what changes when content or names change, and not when files are touched.

    What the manifest promises counts too: a delivery that was rejected for a wrong manifest and
    comes again with the right one is a new one. So do the problems of what is not read.
    """
    lines = sorted(f"{file.name}\0{file.sha256}" for file in files)
    text = "\n".join([*lines, promise, *problems])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


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
    try:
        return repr(read_promise(place, read_manifest(manifest)))
    except PromiseError:
        return file_checksum(manifest)


def read_manifest(path: Path) -> bytes:
    """Read a manifest file, unless it is too large to be one."""
    with path.open("rb") as file:
        content = file.read(LARGEST_MANIFEST + 1)
    if len(content) > LARGEST_MANIFEST:
        raise PromiseError(f"it is larger than {LARGEST_MANIFEST >> 20} MiB")
    return content


def unchanged_files(place: VersionPlace) -> list[Path]:
    """Return the files of a delivered version; refuse when somebody changed them since."""
    folder = Path(str(place.details["folder"]))
    return [_unchanged(place, folder / file["name"], file) for file in place.details["files"]]


def _unchanged(place: VersionPlace, path: Path, file: Mapping[str, Any]) -> Path:
    if not path.is_file():
        reason = f"{path} was removed after it was delivered."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    found = path.stat()
    same_look = _look(found) == _known_look(file)
    if not same_look and (found.st_size != file["size"] or file_checksum(path) != file["sha256"]):
        reason = f"{path} was changed after it was delivered."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    return path
