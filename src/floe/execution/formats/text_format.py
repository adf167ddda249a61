"""What CSV and fixed-width files have in common: one file for a feed, and copies Spark can read."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from floe.execution.formats.contract import BadRecords, DeliveryRejectedError, VersionPlace
from floe.execution.formats.directories import DirectoryFormat, version_files
from floe.execution.formats.manifests import Reading
from floe.execution.formats.records import NOT_SPLIT, BadRecord, Records
from floe.execution.formats.storage import data_files, remove_tree, storage_folder, to_spark
from floe.execution.formats.text import (
    ENDINGS,
    PLAIN_ENCODINGS,
    Layout,
    UnreadableTextError,
    count_records,
    find_records,
    prepare_copy,
    recode,
)
from floe.execution.site import Site
from floe.spec.datasets import TrailerManifest
from floe.spec.formats import TextOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

WRITING = "_writing"


class TextFormat(DirectoryFormat):
    """A format of text files, one record a line."""

    ending = ".txt"

    def layout(self, place: VersionPlace) -> Layout:
        """Say how records of such files are told apart."""
        options = text_options(place)
        return Layout(encoding=options.encoding, compression=options.compression)

    def delimiter(self, place: VersionPlace) -> str:
        """Return what stands between two values."""
        return ""

    @abstractmethod
    def write_lines(self, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        """Let Spark write a frame as UTF-8 text."""

    @abstractmethod
    def records(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> Records:
        """Read files that are plain UTF-8 text."""

    def save(self, site: Site, frame: "DataFrame", place: VersionPlace, folder: Path) -> None:
        # Whoever takes a feed expects one file, named after it.
        if place.spec.feed is None and place.spec.manifest is None:
            self.write_lines(frame, place, folder)
        else:
            self.write_lines(frame.coalesce(1), place, folder / WRITING)
            self._name_file(place, folder)
        options = text_options(place)
        if options.encoding.lower() not in PLAIN_ENCODINGS:
            for path in version_files(folder):
                recode(path, self.layout(place))

    def _name_file(self, place: VersionPlace, folder: Path) -> None:
        ending = f"{self.ending}{ENDINGS.get(text_options(place).compression, '')}"
        target = folder / f"{place.dataset.split('.')[-1]}{ending}"
        parts = data_files(folder / WRITING)
        if parts:
            parts[0].replace(target)
        else:
            target.touch()
        remove_tree(folder / WRITING)

    def reading(self, place: VersionPlace) -> Reading:
        layout = self.layout_of(place)
        return Reading(
            count_rows=lambda path: count_records(path, layout),
            layout=layout,
            delimiter=self.delimiter(place),
        )

    def layout_of(self, place: VersionPlace) -> Layout:
        """Return the layout of a version: what others deliver may have lines on top."""
        layout = self.layout(place)
        delivered = place.path is None or place.details.get("delivered")
        return replace(
            layout,
            skip_lines=layout.skip_lines if delivered else 0,
            trailer=isinstance(place.spec.manifest, TrailerManifest),
        )

    def load(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> "DataFrame":
        return self._records(site, spark, place, files).rows()

    def bad_records(self, site: Site, spark: "SparkSession", place: VersionPlace) -> BadRecords:
        return self._records(site, spark, place, self.files(site, place)).bad()

    def _records(
        self, site: Site, spark: "SparkSession", place: VersionPlace, files: Sequence[Path]
    ) -> Records:
        layout = self.layout_of(place)
        try:
            plain = {self._plain(site, place, path, layout): path for path in files}
            records = self.records(site, spark, place, list(plain))
            return replace(records, locate=partial(self._locate, place, layout, plain))
        except UnreadableTextError as error:
            raise DeliveryRejectedError(place.dataset, f"{error.reason}.") from error

    def _locate(
        self,
        place: VersionPlace,
        layout: Layout,
        sources: Mapping[Path, Path],
        found: Sequence[BadRecord],
    ) -> list[str | None]:
        """Say of bad records in which line of which delivered file they begin, and why."""
        paths = {_spark_name(copy): path for copy, path in sources.items()}
        wanted: dict[Path, set[int]] = {}
        for one in found:
            if path := paths.get(_decoded(one.file)):
                wanted.setdefault(path, set()).add(one.index)
        lines = {
            (path, index): line
            for path, indexes in wanted.items()
            for index, line in find_records(path, layout, indexes).items()
        }
        return [self._told(place, paths.get(_decoded(one.file)), one, lines) for one in found]

    def _told(
        self,
        place: VersionPlace,
        path: Path | None,
        bad: BadRecord,
        lines: Mapping[tuple[Path, int], tuple[int, str]],
    ) -> str | None:
        if path is None or (path, bad.index) not in lines:
            return None
        folder = Path(str(place.details.get("folder", path.parent)))
        name = path.relative_to(folder) if path.is_relative_to(folder) else path.name
        number, record = lines[path, bad.index]
        reason = self.misfit(place, record) if bad.reason == NOT_SPLIT else bad.reason
        return f"{name} line {number}: {reason}"

    def misfit(self, place: VersionPlace, record: str) -> str:
        """Say how the fields of a line differ from those declared."""
        return NOT_SPLIT

    def _plain(self, site: Site, place: VersionPlace, path: Path, layout: Layout) -> Path:
        """Return a file that Spark can read, if need be a copy; it is made once."""
        misnamed = layout.compression != "none" and path.suffix not in ENDINGS.values()
        if layout.is_plain and not misnamed:
            return path
        copy = self._copies(site, place) / _key(path, layout) / _plain_name(path)
        if not copy.exists():
            prepare_copy(path, layout, copy)
        return copy

    def _copies(self, site: Site, place: VersionPlace) -> Path:
        root = storage_folder(site, place.spec) / ".floe" / "prepared"
        return root / place.dataset / place.tag.replace("/", "_")

    def vacuum(self, site: Site, spark: "SparkSession", place: VersionPlace) -> int:
        copies = remove_tree(self._copies(site, place))
        return copies + super().vacuum(site, spark, place)


def _spark_name(path: Path) -> str:
    return to_spark(path).removeprefix("file://")


def _decoded(file: str) -> str:
    """Return the path of a file that Spark gives as a URL."""
    return unquote(urlsplit(file).path)


def _key(path: Path, layout: Layout) -> str:
    found = path.stat()
    look = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    about = f"{path}\0{look}\0{layout}"
    return hashlib.sha256(about.encode()).hexdigest()[:16]


def _plain_name(path: Path) -> str:
    return path.stem if path.suffix in ENDINGS.values() else path.name


def text_options(place: VersionPlace) -> TextOptions:
    """Return the options that all text files have."""
    return cast("TextOptions", place.spec.format_options)
