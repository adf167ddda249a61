"""Base of CSV and fixed-width files: one file per feed, readable copies for Spark."""

import hashlib
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote, urlsplit

from floe.execution.formats.contract import BadRecords, DeliveryRejectedError, StoredVersion
from floe.execution.formats.directories import DirectoryFormat, version_files
from floe.execution.formats.manifests import Reading
from floe.execution.formats.storage import data_files, remove_tree, storage_folder, to_spark
from floe.execution.formats.text_files import (
    ENDINGS,
    PLAIN_ENCODINGS,
    Layout,
    UnreadableTextError,
    count_records,
    find_records,
    prepare_copy,
    recode,
)
from floe.execution.formats.text_records import NOT_SPLIT, BadRecord, Records
from floe.execution.site import Site
from floe.spec.datasets import TrailerManifest
from floe.spec.formats import TextOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

WRITING = "_writing"


class TextFormat(DirectoryFormat):
    """A format of text files with one record per line."""

    ending = ".txt"

    def layout(self, version: StoredVersion) -> Layout:
        """Return how records are separated in the files of a version."""
        options = text_options(version)
        return Layout(encoding=options.encoding, compression=options.compression)

    def delimiter(self, version: StoredVersion) -> str:
        """Return the separator between two values."""
        return ""

    @abstractmethod
    def write_lines(self, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        """Write a frame as UTF-8 text with Spark."""

    @abstractmethod
    def records(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> Records:
        """Read files of plain UTF-8 text."""

    def save(self, site: Site, frame: "DataFrame", version: StoredVersion, folder: Path) -> None:
        # Consumers of a feed expect one file, named after it.
        if version.spec.feed is None and version.spec.manifest is None:
            self.write_lines(frame, version, folder)
        else:
            self.write_lines(frame.coalesce(1), version, folder / WRITING)
            self._name_file(version, folder)
        options = text_options(version)
        if options.encoding.lower() not in PLAIN_ENCODINGS:
            for path in version_files(folder):
                recode(path, self.layout(version))

    def _name_file(self, version: StoredVersion, folder: Path) -> None:
        ending = f"{self.ending}{ENDINGS.get(text_options(version).compression, '')}"
        target = folder / f"{version.dataset.split('.')[-1]}{ending}"
        parts = data_files(folder / WRITING)
        if parts:
            parts[0].replace(target)
        else:
            target.touch()
        remove_tree(folder / WRITING)

    def reading(self, version: StoredVersion) -> Reading:
        layout = self.layout_of(version)
        return Reading(
            count_rows=lambda path: count_records(path, layout),
            layout=layout,
            delimiter=self.delimiter(version),
        )

    def layout_of(self, version: StoredVersion) -> Layout:
        """Return the layout of a version; only deliveries have lines to skip."""
        layout = self.layout(version)
        delivered = version.path is None or version.details.get("delivered")
        return replace(
            layout,
            skip_lines=layout.skip_lines if delivered else 0,
            trailer=isinstance(version.spec.manifest, TrailerManifest),
        )

    def load(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> "DataFrame":
        return self._records(site, spark, version, files).rows()

    def bad_records(self, site: Site, spark: "SparkSession", version: StoredVersion) -> BadRecords:
        return self._records(site, spark, version, self.files(site, version)).bad()

    def _records(
        self, site: Site, spark: "SparkSession", version: StoredVersion, files: Sequence[Path]
    ) -> Records:
        layout = self.layout_of(version)
        try:
            plain = {self._plain(site, version, path, layout): path for path in files}
            records = self.records(site, spark, version, list(plain))
            return replace(records, locate=partial(self._locate, version, layout, plain))
        except UnreadableTextError as error:
            raise DeliveryRejectedError(version.dataset, f"{error.reason}.") from error

    def _locate(
        self,
        version: StoredVersion,
        layout: Layout,
        sources: Mapping[Path, Path],
        records: Sequence[BadRecord],
    ) -> list[str | None]:
        """Return file, line and reason of each bad record, None if it is not found."""
        paths = {_spark_name(copy): path for copy, path in sources.items()}
        wanted: dict[Path, set[int]] = {}
        for record in records:
            if path := paths.get(_decoded(record.file)):
                wanted.setdefault(path, set()).add(record.index)
        lines = {
            (path, index): line
            for path, indexes in wanted.items()
            for index, line in find_records(path, layout, indexes).items()
        }
        return [
            self._describe(version, paths.get(_decoded(record.file)), record, lines)
            for record in records
        ]

    def _describe(
        self,
        version: StoredVersion,
        path: Path | None,
        bad: BadRecord,
        lines: Mapping[tuple[Path, int], tuple[int, str]],
    ) -> str | None:
        if path is None or (path, bad.index) not in lines:
            return None
        folder = Path(str(version.details.get("folder", path.parent)))
        name = path.relative_to(folder) if path.is_relative_to(folder) else path.name
        line_number, record = lines[path, bad.index]
        reason = self.misfit(version, record) if bad.reason == NOT_SPLIT else bad.reason
        return f"{name} line {line_number}: {reason}"

    def misfit(self, version: StoredVersion, record: str) -> str:
        """Describe how the fields of a line differ from the declared columns."""
        return NOT_SPLIT

    def _plain(self, site: Site, version: StoredVersion, path: Path, layout: Layout) -> Path:
        """Return a file that Spark can read: the file itself or a copy, created once."""
        misnamed = layout.compression != "none" and path.suffix not in ENDINGS.values()
        if layout.is_plain and not misnamed:
            return path
        copy = self._copies(site, version) / _key(path, layout) / _plain_name(path)
        if not copy.exists():
            prepare_copy(path, layout, copy)
        return copy

    def _copies(self, site: Site, version: StoredVersion) -> Path:
        root = storage_folder(site, version.spec) / ".floe" / "prepared"
        return root / version.dataset / version.tag.replace("/", "_")

    def vacuum(self, site: Site, spark: "SparkSession", version: StoredVersion) -> int:
        copies = remove_tree(self._copies(site, version))
        return copies + super().vacuum(site, spark, version)


def _spark_name(path: Path) -> str:
    return to_spark(path).removeprefix("file://")


def _decoded(file: str) -> str:
    """Return the path of a file URL from Spark."""
    return unquote(urlsplit(file).path)


def _key(path: Path, layout: Layout) -> str:
    status = path.stat()
    identity = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    key = f"{path}\0{identity}\0{layout}"
    return hashlib.sha256(key.encode()).hexdigest()[:16]


def _plain_name(path: Path) -> str:
    return path.stem if path.suffix in ENDINGS.values() else path.name


def text_options(version: StoredVersion) -> TextOptions:
    """Return the options common to all text formats."""
    return cast("TextOptions", version.spec.format_options)
