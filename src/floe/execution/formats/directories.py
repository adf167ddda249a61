"""Base of formats that write each version once, to a directory of its own.

A custom format inherits everything from DirectoryFormat except `save` (DataFrame to files) and
`load` (files to DataFrame). A version is complete once its marker file exists.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.execution.formats.contract import (
    BadRecords,
    Delivery,
    StoredVersion,
    Target,
    VersionUnreadableError,
    WriteModeError,
    Written,
)
from floe.execution.formats.deliveries import (
    MANIFEST,
    find_delivery,
    manifest_file,
    unchanged_files,
    verify_delivery,
)
from floe.execution.formats.locations import (
    known_folder,
    point_latest,
    version_folder,
    withdraw_latest,
)
from floe.execution.formats.manifests import (
    Promise,
    PromisedFile,
    Reading,
    content_checksum,
    render_control,
    render_json,
    render_trailer,
)
from floe.execution.formats.storage import (
    data_files,
    file_checksum,
    put_file,
    remove_tree,
    sync_tree,
    tree_size,
)
from floe.execution.formats.text_files import append_line
from floe.execution.site import Site
from floe.execution.spark.queries import Counted
from floe.spec.datasets import ControlManifest, JsonManifest, TrailerManifest
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

MARKER = "_SUCCESS"


class DirectoryFormat(ABC):
    """Base class of formats that write each version to a directory of its own."""

    name: str = ""
    modes: Sequence[WriteMode] = ("replace",)

    @abstractmethod
    def save(self, site: Site, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        """Write a DataFrame as files into a folder."""

    @abstractmethod
    def load(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> "DataFrame":
        """Read files as a DataFrame."""

    def reading(self, version: StoredVersion) -> Reading:
        """Return how manifests inspect the files without Spark; by default they cannot."""
        return Reading(count_rows=lambda path: None)

    def locate(self, site: Site, version: StoredVersion) -> Target:
        return Target(str(version_folder(site, version)))

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        if mode not in self.modes:
            raise WriteModeError(version.dataset, self.name, mode, self.modes)
        folder = known_folder(site, version)
        # An earlier attempt may have left half a version.
        remove_tree(folder)
        folder.mkdir(parents=True)
        counted = Counted(frame)
        self.save(site, counted.frame, version, folder)
        _append_trailers(version, folder, self.reading(version), counted.rows)
        return self._seal(version, folder, counted.rows)

    def adopt(self, site: Site, spark: "SparkSession", version: StoredVersion) -> Written:
        """Register files that a command wrote into the version directory itself."""
        folder = known_folder(site, version)
        if not folder.is_dir() or not version_files(folder):
            reason = f"nothing was written to {folder}."
            raise VersionUnreadableError(version.dataset, version.tag, reason)
        return self._seal(version, folder, None)

    def _seal(self, version: StoredVersion, folder: Path, rows: int | None) -> Written:
        details = _seal_folder(version, folder, self.reading(version), rows)
        files = len(version_files(folder))
        return Written(rows=rows, size=tree_size(folder), details=details, files=files)

    def read_draft(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        return self.read(site, spark, version)

    def publish(
        self, site: Site, spark: "SparkSession", version: StoredVersion, *, newest: bool
    ) -> Mapping[str, Any]:
        if version.details.get("delivered"):
            return version.details
        folder = known_folder(site, version)
        _write_outer_manifest(site, version, folder, self.reading(version))
        if not newest or version.spec.feed is None:
            return version.details
        return {**version.details, **point_latest(site, version, folder)}

    def is_whole(self, site: Site, spark: "SparkSession", version: StoredVersion) -> bool:
        try:
            return bool(self.files(site, version))
        except VersionUnreadableError:
            return False

    def discard(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        self.vacuum(site, spark, version)

    def read(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        return self.load(site, spark, version, self.files(site, version))

    def show(
        self, site: Site, spark: "SparkSession", version: StoredVersion
    ) -> Mapping[str, Any] | None:
        if version.spec.feed is None or version.details.get("delivered"):
            return None
        return {**version.details, **point_latest(site, version, known_folder(site, version))}

    def hide(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        if version.spec.feed is not None and not version.details.get("delivered"):
            withdraw_latest(site, version, known_folder(site, version))

    def vacuum(self, site: Site, spark: "SparkSession", version: StoredVersion) -> int:
        # Delivered files belong to the system that delivered them.
        return 0 if version.details.get("delivered") else remove_tree(known_folder(site, version))

    def files(self, site: Site, version: StoredVersion) -> list[Path]:
        """Return the data files of a version, whether written by floe or delivered."""
        if version.details.get("delivered"):
            return unchanged_files(version)
        folder = known_folder(site, version)
        if not _is_complete(version, folder):
            reason = f"{folder} is {'not complete' if folder.is_dir() else 'missing'}."
            raise VersionUnreadableError(version.dataset, version.tag, reason)
        return version_files(folder)

    def find(self, site: Site, version: StoredVersion) -> Delivery | None:
        return find_delivery(site, version)

    def verify(
        self, site: Site, spark: "SparkSession", version: StoredVersion, delivery: Delivery
    ) -> Delivery:
        return verify_delivery(site, version, delivery, self.reading(version))

    def bad_records(self, site: Site, spark: "SparkSession", version: StoredVersion) -> BadRecords:
        return BadRecords()


def _seal_folder(
    version: StoredVersion, folder: Path, reading: Reading, rows: int | None
) -> Mapping[str, Any]:
    """Mark a version directory as complete; return what the catalog stores about it.

    The marker (or the manifest inside the directory) is written last.
    """
    (folder / MARKER).unlink(missing_ok=True)
    # Hadoop's checksum beside each file: useless to others, and wrong once a trailer is added.
    for path in folder.rglob(".*.crc"):
        path.unlink()
    files = _describe_files(version, folder, reading, rows) if _needs_file_list(version) else ()
    sync_tree(folder)
    if _marker(version) == MANIFEST:
        put_file(folder / MANIFEST, render_json(_header(version), files))
    else:
        put_file(folder / MARKER, b"")
    entries = [{**asdict(file), "path": str(folder / file.name)} for file in files]
    return {"files": entries} if entries else {}


def _is_complete(version: StoredVersion, folder: Path) -> bool:
    return (folder / _marker(version)).is_file()


def _marker(version: StoredVersion) -> str:
    manifest = version.spec.manifest
    inner = isinstance(manifest, JsonManifest) and manifest.path is None
    return MANIFEST if inner else MARKER


def _needs_file_list(version: StoredVersion) -> bool:
    return version.spec.manifest is not None or version.spec.feed is not None


def _append_trailers(
    version: StoredVersion, folder: Path, reading: Reading, rows: int | None
) -> None:
    """Append the trailer line to each file, if the dataset has trailers."""
    manifest = version.spec.manifest
    if not isinstance(manifest, TrailerManifest):
        return
    for path in version_files(folder):
        count = rows if rows is not None else reading.count_rows(path)
        checksum = content_checksum(path, reading.layout, manifest.checksum or "sha256")
        line = render_trailer(manifest, reading.delimiter, count or 0, checksum)
        append_line(path, reading.layout, line)


def version_files(folder: Path) -> list[Path]:
    """Return the data files of a version directory."""
    return [path for path in data_files(folder) if path != folder / MANIFEST]


def _describe_files(
    version: StoredVersion, folder: Path, reading: Reading, rows: int | None
) -> tuple[PromisedFile, ...]:
    """Describe the files of a version directory as its manifest lists them."""
    paths = version_files(folder)
    kind = getattr(version.spec.manifest, "checksum", None) or "sha256"
    return tuple(
        PromisedFile(
            name=path.relative_to(folder).as_posix(),
            rows=rows if rows is not None and len(paths) == 1 else reading.count_rows(path),
            size=path.stat().st_size,
            checksum=file_checksum(path, kind),
            algorithm=kind,
        )
        for path in paths
    )


def _write_outer_manifest(
    site: Site, version: StoredVersion, folder: Path, reading: Reading
) -> None:
    """Write the manifest that is kept outside the version directory.

    Consumers watch for it, so it is written only after the version has passed its checks.
    """
    manifest = version.spec.manifest
    target = manifest_file(site, version, folder)
    if target is None or not isinstance(manifest, JsonManifest | ControlManifest):
        return
    if isinstance(manifest, JsonManifest):
        if manifest.path is not None:
            files = _describe_files(version, folder, reading, None)
            put_file(target, render_json(_header(version), files))
        return
    files = _describe_files(version, folder, reading, None)
    rows = Promise(files).total_rows or 0
    checksum = files[0].checksum if len(files) == 1 else None
    put_file(target, render_control(manifest, rows, checksum))


def _header(version: StoredVersion) -> dict[str, str]:
    return {
        "dataset": version.dataset,
        "version": version.tag,
        "business_date": version.business_date.isoformat(),
    }
