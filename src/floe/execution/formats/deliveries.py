"""Find delivered files, and verify them against their manifest."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from glob import has_magic
from pathlib import Path
from typing import Any

from floe.execution.formats.contract import (
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    StoredVersion,
    VersionUnreadableError,
)
from floe.execution.formats.delivered_files import DanglingLinkError, StorageBoundary, matching
from floe.execution.formats.locations import delivery_pattern, stable_path
from floe.execution.formats.manifests import (
    ManifestError,
    Promise,
    PromisedFile,
    Reading,
    checksum_before,
    parse_control,
    parse_json,
    parse_trailer,
    read_trailer,
)
from floe.execution.formats.storage import (
    file_checksum,
    joint_checksum,
    same_checksum,
    storage_folder,
)
from floe.execution.formats.text_files import UnreadableTextError
from floe.execution.site import Site
from floe.spec.datasets import ControlManifest, JsonManifest, TrailerManifest

MANIFEST = "manifest.json"
LARGEST_MANIFEST = 64 << 20


@dataclass(frozen=True)
class DeliveredFile:
    """A delivered file, as the catalog stores it with the version."""

    name: str
    size: int
    mtime_ns: int
    ctime_ns: int
    """Last change by the file system's clock, which a writer cannot set back."""
    sha256: str


def _size_and_times(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _known_size_and_times(file: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    return file.get("size"), file.get("mtime_ns"), file.get("ctime_ns")


def find_delivery(site: Site, version: StoredVersion) -> Delivery | None:
    """Find the delivered files of a version. None if nothing has arrived."""
    pattern = delivery_pattern(site, version)
    folder = _literal_folder(pattern)
    if not folder.is_dir():
        return None
    boundary = StorageBoundary(storage_folder(site, version.spec), site.state_dir)
    manifest = manifest_file(site, version, folder)
    paths = [path for path in matching(pattern, folder, boundary) if path != manifest]
    if not paths:
        return None
    names = {path: path.relative_to(folder).as_posix() for path in paths}
    checked = {**names, **({} if manifest is None else _manifest_name(manifest))}
    problems = {path: _problem(version, boundary, path, name) for path, name in checked.items()}
    sound = [path for path in paths if not problems[path]]
    known = {file["name"]: file for file in version.details.get("files", ())}
    files = [_describe(version, path, names[path], known) for path in sound]
    problem = next(filter(None, problems.values()), "")
    promise = "" if problem else _promise_text(version, manifest)
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


def _manifest_name(manifest: Path) -> dict[Path, str]:
    return {manifest: manifest.name} if os.path.lexists(manifest) else {}


def _problem(version: StoredVersion, boundary: StorageBoundary, path: Path, name: str) -> str:
    try:
        return boundary.problem(path, name)
    except DanglingLinkError as error:
        raise DeliveryIncompleteError(version.dataset, str(error)) from None


def _literal_folder(pattern: Path) -> Path:
    """Return the deepest existing folder that contains every match of a pattern."""
    for folder in (pattern, *pattern.parents):
        if not has_magic(str(folder)) and folder.is_dir():
            return folder
    return pattern.parent


def _describe(
    version: StoredVersion, path: Path, name: str, known: Mapping[str, Mapping[str, Any]]
) -> DeliveredFile:
    before = _size_and_times(path.stat())
    file = known.get(name, {})
    same = _known_size_and_times(file) == before
    sha256 = str(file["sha256"]) if same and "sha256" in file else file_checksum(path)
    if _size_and_times(path.stat()) != before:
        raise DeliveryIncompleteError(version.dataset, f"{name} is being written right now.")
    return DeliveredFile(name, *before, sha256)


def fingerprint_of(
    files: Sequence[DeliveredFile], promise: str = "", problems: Sequence[str] = ()
) -> str:
    """Return a hash of file names and contents; touching a file does not change it.

    It includes the content of the manifest: after a rejection, the same files with a corrected
    manifest are a new delivery. It also includes the problems of files that are not read.
    """
    lines = sorted(f"{file.name}\0{file.sha256}" for file in files)
    text = "\n".join([*lines, promise, *problems])
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def manifest_file(site: Site, version: StoredVersion, folder: Path) -> Path | None:
    """Return the expected path of a version's manifest file, or None if it has none."""
    manifest = version.spec.manifest
    if isinstance(manifest, JsonManifest) and manifest.path is None:
        return folder / MANIFEST
    if isinstance(manifest, JsonManifest | ControlManifest):
        return stable_path(site, version, manifest.path or MANIFEST)
    return None


def _read_promise(version: StoredVersion, content: bytes) -> Promise:
    """Parse the content of a version's manifest file."""
    manifest = version.spec.manifest
    if isinstance(manifest, JsonManifest):
        return parse_json(content, manifest)
    if isinstance(manifest, ControlManifest):
        return parse_control(content, manifest)
    return Promise()


def _promise_text(version: StoredVersion, manifest: Path | None) -> str:
    if manifest is None or not manifest.is_file():
        return ""
    try:
        return repr(_read_promise(version, _read_manifest(manifest)))
    except ManifestError:
        return file_checksum(manifest)


def _read_manifest(path: Path) -> bytes:
    """Read a manifest file; raise if it is too large."""
    with path.open("rb") as file:
        content = file.read(LARGEST_MANIFEST + 1)
    if len(content) > LARGEST_MANIFEST:
        raise ManifestError(f"it is larger than {LARGEST_MANIFEST >> 20} MiB")
    return content


def unchanged_files(version: StoredVersion) -> list[Path]:
    """Return the files of a delivered version; raise if any was changed or removed."""
    folder = Path(str(version.details["folder"]))
    return [_unchanged(version, folder / file["name"], file) for file in version.details["files"]]


def _unchanged(version: StoredVersion, path: Path, file: Mapping[str, Any]) -> Path:
    if not path.is_file():
        reason = f"{path} was removed after it was delivered."
        raise VersionUnreadableError(version.dataset, version.tag, reason)
    status = path.stat()
    touched = _size_and_times(status) != _known_size_and_times(file)
    if touched and (status.st_size != file["size"] or file_checksum(path) != file["sha256"]):
        reason = f"{path} was changed after it was delivered."
        raise VersionUnreadableError(version.dataset, version.tag, reason)
    return path


def verify_delivery(
    site: Site, version: StoredVersion, delivery: Delivery, reading: Reading
) -> Delivery:
    """Compare a delivery with its manifest; return it with the manifest's row count.

    No row is loaded for this. Raise DeliveryRejectedError on a mismatch and DeliveryIncompleteError
    while the manifest or a trailer is missing.
    """
    verifier = _Verifier(site, version, delivery, reading)
    try:
        rows = verifier.verify()
    except UnreadableTextError as error:
        raise DeliveryRejectedError(version.dataset, f"{error.reason}.") from error
    return delivery if rows is None else replace(delivery, rows=rows)


class _Verifier:
    """Compares one delivery with its manifest."""

    def __init__(self, site: Site, version: StoredVersion, delivery: Delivery, reading: Reading):
        self._site = site
        self._version = version
        self._reading = reading
        self._folder = Path(str(delivery.details["folder"]))
        self._files: dict[str, Any] = {file["name"]: file for file in delivery.details["files"]}
        self._counts: dict[str, int | None] = {}

    def verify(self) -> int | None:
        manifest = self._version.spec.manifest
        if manifest is None:
            return None
        if isinstance(manifest, TrailerManifest):
            return sum(self._verify_trailer(name, manifest) for name in self._files)
        promise = self._read()
        if isinstance(manifest, JsonManifest):
            self._check_is_complete(promise, manifest)
        self._check_files(promise)
        self._check_total(promise)
        return promise.total_rows

    def _read(self) -> Promise:
        path = manifest_file(self._site, self._version, self._folder)
        if path is None or not path.is_file():
            reason = f"{path.name if path else 'the manifest'} is missing."
            raise DeliveryIncompleteError(self._version.dataset, reason)
        try:
            return _read_promise(self._version, _read_manifest(path))
        except ManifestError as error:
            raise self._rejected(f"{path.name} cannot be read: {error}.") from error

    def _check_is_complete(self, promise: Promise, manifest: JsonManifest) -> None:
        if manifest.files and promise.files is None:
            raise self._rejected("the manifest lists no files.")
        if manifest.rows and promise.total_rows is None:
            raise self._rejected("the manifest gives no row counts.")
        unsigned = [file.name for file in promise.files or () if file.checksum is None]
        if manifest.checksum and (unsigned or promise.files is None) and promise.checksum is None:
            named = f" for {unsigned[0]}" if unsigned else ""
            raise self._rejected(f"the manifest gives no {manifest.checksum}{named}.")

    def _check_files(self, promise: Promise) -> None:
        if promise.files is None:
            return
        listed = {file.name: file for file in promise.files}
        for name in listed:
            if name not in self._files:
                # Rejected, not incomplete: the manifest is delivered last, after all files.
                raise self._rejected(f"{name} is in the manifest but was not delivered.")
        for name in self._files:
            if name not in listed:
                raise self._rejected(f"{name} was delivered but is not in the manifest.")
        for file in promise.files:
            self._check_file(file)

    def _check_file(self, file: PromisedFile) -> None:
        path, delivered = self._folder / file.name, self._files[file.name]
        if file.size is not None and file.size != delivered["size"]:
            raise self._mismatch(file.name, "bytes", file.size, delivered["size"])
        if file.checksum is not None and file.algorithm is not None:
            known = delivered["sha256"] if file.algorithm == "sha256" else None
            self._check_sum(
                file.name,
                file.algorithm,
                file.checksum,
                known or file_checksum(path, file.algorithm),
            )
        if file.rows is not None:
            self._check_rows(file.name, file.rows, self._count(file.name))

    def _check_total(self, promise: Promise) -> None:
        if promise.rows is not None:
            counts = [self._count(name) for name in self._files]
            known = [count for count in counts if count is not None]
            total = sum(known) if len(known) == len(counts) else None
            self._check_rows("all files together", promise.rows, total)
        if promise.checksum is not None and promise.algorithm is not None:
            paths = [self._folder / name for name in sorted(self._files)]
            actual = joint_checksum(paths, promise.algorithm)
            self._check_sum("all files together", promise.algorithm, promise.checksum, actual)

    def _verify_trailer(self, name: str, manifest: TrailerManifest) -> int:
        path, layout = self._folder / name, self._reading.layout
        line = read_trailer(path, layout, manifest)
        if line is None:
            reason = f"{name} does not end with a trailer '{manifest.prefix}'."
            raise DeliveryIncompleteError(self._version.dataset, reason)
        try:
            promised = parse_trailer(name, line, manifest, self._reading.delimiter)
        except ManifestError as error:
            raise self._rejected(f"{name} cannot be verified: {error}.") from error
        if promised.checksum and promised.algorithm:
            actual = checksum_before(path, layout, promised.algorithm)
            self._check_sum(name, promised.algorithm, promised.checksum, actual)
        self._check_rows(name, promised.rows, self._count(name))
        return promised.rows or 0

    def _count(self, name: str) -> int | None:
        if name not in self._counts:
            self._counts[name] = self._reading.count_rows(self._folder / name)
        return self._counts[name]

    def _check_rows(self, name: str, promised: int | None, actual: int | None) -> None:
        # Formats that cannot count rows without their own reader skip this check.
        if promised is not None and actual is not None and promised != actual:
            raise self._mismatch(name, "rows", promised, actual)

    def _check_sum(self, name: str, kind: str, promised: str, actual: str) -> None:
        if not same_checksum(promised, actual):
            raise self._mismatch(name, kind, promised, actual)

    def _mismatch(
        self, name: str, what: str, promised: object, actual: object
    ) -> DeliveryRejectedError:
        return self._rejected(f"{name}: the manifest says {what} {promised}, found {actual}.")

    def _rejected(self, reason: str) -> DeliveryRejectedError:
        return DeliveryRejectedError(self._version.dataset, reason)
