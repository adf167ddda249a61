"""Formats whose versions are directories of files, each written once and never changed.

A custom format inherits everything from DirectoryFormat except `save` (DataFrame to files) and
`load` (files to DataFrame). A version is complete once its marker file exists.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.execution.formats.checksums import file_checksum
from floe.execution.formats.contract import (
    BadRecords,
    Delivery,
    Spot,
    VersionPlace,
    VersionUnreadableError,
    WriteModeError,
    Written,
)
from floe.execution.formats.counting import Counted
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
from floe.execution.formats.storage import data_files, put_file, remove_tree, sync_tree, tree_size
from floe.execution.formats.text import append_line
from floe.execution.site import Site
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
    def save(self, site: Site, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        """Write a DataFrame as files into a folder."""

    @abstractmethod
    def load(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        """Read files as a DataFrame."""

    def reading(self, place: VersionPlace) -> Reading:
        """Return how manifests inspect the files without Spark; by default they cannot."""
        return Reading(count_rows=lambda path: None)

    def locate(self, site: Site, place: VersionPlace) -> Spot:
        return Spot(str(version_folder(site, place)))

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        if mode not in self.modes:
            raise WriteModeError(place.dataset, self.name, mode, self.modes)
        folder = known_folder(site, place)
        # An earlier attempt may have left half a version.
        remove_tree(folder)
        folder.mkdir(parents=True)
        counted = Counted(frame)
        self.save(site, counted.frame, place, folder)
        _append_trailers(place, folder, self.reading(place), counted.rows)
        return self._seal(place, folder, counted.rows)

    def adopt(self, site: Site, spark: "SparkSession", place: VersionPlace) -> Written:
        """Register files that a command wrote into the version directory itself."""
        folder = known_folder(site, place)
        if not folder.is_dir() or not version_files(folder):
            reason = f"nothing was written to {folder}."
            raise VersionUnreadableError(place.dataset, place.tag, reason)
        return self._seal(place, folder, None)

    def _seal(self, place: VersionPlace, folder: Path, rows: int | None) -> Written:
        details = _seal_folder(place, folder, self.reading(place), rows)
        files = len(version_files(folder))
        return Written(rows=rows, size=tree_size(folder), details=details, files=files)

    def read_draft(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        return self.read(site, spark, place)

    def publish(
        self, site: Site, spark: "SparkSession", place: VersionPlace, *, newest: bool
    ) -> Mapping[str, Any]:
        if place.details.get("delivered"):
            return place.details
        folder = known_folder(site, place)
        _write_outer_manifest(site, place, folder, self.reading(place))
        if not newest or place.spec.feed is None:
            return place.details
        return {**place.details, **point_latest(site, place, folder)}

    def is_whole(self, site: Site, spark: "SparkSession", place: VersionPlace) -> bool:
        try:
            return bool(self.files(site, place))
        except VersionUnreadableError:
            return False

    def discard(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        self.vacuum(site, spark, place)

    def read(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        return self.load(site, spark, place, self.files(site, place))

    def show(
        self, site: Site, spark: "SparkSession", place: VersionPlace
    ) -> Mapping[str, Any] | None:
        if place.spec.feed is None or place.details.get("delivered"):
            return None
        return {**place.details, **point_latest(site, place, known_folder(site, place))}

    def hide(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        if place.spec.feed is not None and not place.details.get("delivered"):
            withdraw_latest(site, place, known_folder(site, place))

    def vacuum(self, site: Site, spark: "SparkSession", place: VersionPlace) -> int:
        # Delivered files belong to whoever delivered them.
        return 0 if place.details.get("delivered") else remove_tree(known_folder(site, place))

    def files(self, site: Site, place: VersionPlace) -> list[Path]:
        """Return the data files of a version, whether written by floe or delivered."""
        if place.details.get("delivered"):
            return unchanged_files(place)
        folder = known_folder(site, place)
        if not _is_complete(place, folder):
            reason = f"{folder} is {'not complete' if folder.is_dir() else 'missing'}."
            raise VersionUnreadableError(place.dataset, place.tag, reason)
        return version_files(folder)

    def find(self, site: Site, place: VersionPlace) -> Delivery | None:
        return find_delivery(site, place)

    def verify(
        self, site: Site, spark: "SparkSession", place: VersionPlace, delivery: Delivery
    ) -> Delivery:
        return verify_delivery(site, place, delivery, self.reading(place))

    def bad_records(self, site: Site, spark: "SparkSession", place: VersionPlace) -> BadRecords:
        return BadRecords()


def _seal_folder(
    place: VersionPlace, folder: Path, reading: Reading, rows: int | None
) -> Mapping[str, Any]:
    """Mark a version directory as complete; return what the catalog stores about it.

    The marker (or the manifest inside the directory) is written last.
    """
    (folder / MARKER).unlink(missing_ok=True)
    # Hadoop's checksum beside each file: useless to others, and wrong once a trailer is added.
    for path in folder.rglob(".*.crc"):
        path.unlink()
    files = _describe_files(place, folder, reading, rows) if _needs_file_list(place) else ()
    sync_tree(folder)
    if _marker(place) == MANIFEST:
        put_file(folder / MANIFEST, render_json(_header(place), files))
    else:
        put_file(folder / MARKER, b"")
    entries = [{**asdict(file), "path": str(folder / file.name)} for file in files]
    return {"files": entries} if entries else {}


def _is_complete(place: VersionPlace, folder: Path) -> bool:
    return (folder / _marker(place)).is_file()


def _marker(place: VersionPlace) -> str:
    manifest = place.spec.manifest
    inner = isinstance(manifest, JsonManifest) and manifest.path is None
    return MANIFEST if inner else MARKER


def _needs_file_list(place: VersionPlace) -> bool:
    return place.spec.manifest is not None or place.spec.feed is not None


def _append_trailers(place: VersionPlace, folder: Path, reading: Reading, rows: int | None) -> None:
    """Append the trailer line to each file, if the dataset has trailers."""
    manifest = place.spec.manifest
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
    place: VersionPlace, folder: Path, reading: Reading, rows: int | None
) -> tuple[PromisedFile, ...]:
    """Describe the files of a version directory as its manifest lists them."""
    paths = version_files(folder)
    kind = getattr(place.spec.manifest, "checksum", None) or "sha256"
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


def _write_outer_manifest(site: Site, place: VersionPlace, folder: Path, reading: Reading) -> None:
    """Write the manifest that is kept outside the version directory.

    Consumers watch for it, so it is written only after the version has passed its checks.
    """
    manifest = place.spec.manifest
    target = manifest_file(site, place, folder)
    if target is None or not isinstance(manifest, JsonManifest | ControlManifest):
        return
    if isinstance(manifest, JsonManifest):
        if manifest.path is not None:
            files = _describe_files(place, folder, reading, None)
            put_file(target, render_json(_header(place), files))
        return
    files = _describe_files(place, folder, reading, None)
    rows = Promise(files).total_rows or 0
    checksum = files[0].checksum if len(files) == 1 else None
    put_file(target, render_control(manifest, rows, checksum))


def _header(place: VersionPlace) -> dict[str, str]:
    return {
        "dataset": place.dataset,
        "version": place.tag,
        "business_date": place.business_date.isoformat(),
    }
