"""Formats whose versions are directories of files, each written once and never changed.

A format of one's own inherits all but two things from here: how a frame becomes files, and how
files become a frame.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from floe.execution.formats.latest import point_latest, withdraw_latest
from floe.execution.formats.locations import known_folder, version_folder
from floe.execution.formats.manifests.finding import find_delivery, unchanged_files
from floe.execution.formats.manifests.reading import Reading
from floe.execution.formats.manifests.verifying import verify_delivery
from floe.execution.formats.manifests.writing import (
    append_trailers,
    is_sealed,
    seal_folder,
    version_files,
    write_outer_manifest,
)
from floe.execution.formats.storage import remove_tree, tree_size
from floe.execution.site import Site
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


class DirectoryFormat(ABC):
    """A format of version directories."""

    name: str = ""
    modes: Sequence[WriteMode] = ("replace",)

    @abstractmethod
    def save(self, site: Site, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        """Write a frame as files into a folder."""

    @abstractmethod
    def load(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        """Read files as a frame."""

    def reading(self, place: VersionPlace) -> Reading:
        """Say how manifests may look into the files without Spark; by default not at all."""
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
        # What an attempt before this one left may be half a version.
        remove_tree(folder)
        folder.mkdir(parents=True)
        counted = Counted(frame)
        self.save(site, counted.frame, place, folder)
        append_trailers(place, folder, self.reading(place), counted.rows)
        return self._seal(place, folder, counted.rows)

    def adopt(self, site: Site, spark: "SparkSession", place: VersionPlace) -> Written:
        """Take over what a command wrote into the version's directory by itself."""
        folder = known_folder(site, place)
        if not folder.is_dir() or not version_files(folder):
            reason = f"nothing was written to {folder}."
            raise VersionUnreadableError(place.dataset, place.tag, reason)
        return self._seal(place, folder, None)

    def _seal(self, place: VersionPlace, folder: Path, rows: int | None) -> Written:
        details = seal_folder(place, folder, self.reading(place), rows)
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
        write_outer_manifest(site, place, folder, self.reading(place))
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
        # What others delivered is theirs to remove.
        return 0 if place.details.get("delivered") else remove_tree(known_folder(site, place))

    def files(self, site: Site, place: VersionPlace) -> list[Path]:
        """Return the data files of a version, as they were written or delivered."""
        if place.details.get("delivered"):
            return unchanged_files(place)
        folder = known_folder(site, place)
        if not is_sealed(place, folder):
            reason = f"{folder} is {'not complete' if folder.is_dir() else 'gone'}."
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
