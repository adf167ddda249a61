"""The contract of a format: write a version unseen, publish, read and remove it.

A write has three durable steps, recorded in the version's catalog row. The catalog stores the
version's location before anything is written, so the leftovers of a killed run can be found:
`discard` and `publish` may be called at any time and repeatedly.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from floe.errors import FloeError
from floe.execution.site import Site
from floe.spec import DatasetSpec
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession


MOST_SHOWN = 3


@dataclass(frozen=True)
class StoredVersion:
    """One version of a dataset, with everything needed to locate its data."""

    dataset: str
    spec: DatasetSpec
    tag: str
    business_date: date
    partition: str | None = None
    path: str | None = None
    """The directory, file pattern or table, as recorded in the catalog."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the format recorded when the version was located, written or published."""
    run_id: str | None = None

    @property
    def key(self) -> str:
        """The partition, or the business date."""
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class Target:
    """The location of a new version, recorded before anything is written."""

    path: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """The result of a write."""

    rows: int | None = None
    size: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    files: int | None = None


@dataclass(frozen=True)
class BadRecords:
    """The records that could not be read and were dropped."""

    count: int = 0
    samples: Sequence[str] = ()


@dataclass(frozen=True)
class Delivery:
    """Data that another system delivered; a new fingerprint is a new delivery."""

    path: str
    fingerprint: str
    size: int | None = None
    rows: int | None = None
    """The row count of the manifest, after verification."""
    details: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why it is rejected unread, such as a link that points outside the storage root."""


class DeliveryRejectedError(FloeError):
    """A delivery does not match its manifest, format or schema."""

    def __init__(self, dataset: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The delivery of '{dataset}' was rejected: {reason}")


class DeliveryIncompleteError(FloeError):
    """A delivery is missing or incomplete. It may still arrive, so it is not rejected."""

    def __init__(self, dataset: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The delivery of '{dataset}' is not complete yet: {reason}")


class VersionUnreadableError(FloeError):
    """A version is in the catalog, but its data cannot be read."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Version {tag} of '{dataset}' cannot be read: {reason}")


class WriteModeError(FloeError):
    """A format does not support the write mode of a process."""

    def __init__(self, dataset: str, name: str, mode: str, supported: Sequence[str]) -> None:
        super().__init__(
            f"'{dataset}' has format {name}, which does not support write mode '{mode}'. "
            f"Use one of: {', '.join(supported)}."
        )


class Format(Protocol):
    """Reads and writes the versions of all datasets of one format."""

    name: str
    modes: Sequence[WriteMode]

    def locate(self, site: Site, version: StoredVersion) -> Target:
        """Return the location of a new version. Nothing is written yet."""
        ...

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        """Write a version where no reader sees it; a second call overwrites the first."""
        ...

    def read_draft(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        """Read a version that is written but not published, to check it."""
        ...

    def publish(
        self, site: Site, spark: "SparkSession", version: StoredVersion, *, newest: bool
    ) -> Mapping[str, Any]:
        """Make a version visible to readers; if `newest`, under the stable name too.

        Returns the details to record with the version. Publishing again does nothing.
        """
        ...

    def is_whole(self, site: Site, spark: "SparkSession", version: StoredVersion) -> bool:
        """Tell, after a crash, whether the data to publish is still complete."""
        ...

    def discard(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        """Remove the data of an unfinished or rejected version, if there is any."""
        ...

    def read(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        """Read a published version."""
        ...

    def show(
        self, site: Site, spark: "SparkSession", version: StoredVersion
    ) -> Mapping[str, Any] | None:
        """Restore a version to the stable name, after a later one was retracted."""
        ...

    def hide(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        """Remove a retracted version from the stable name, if nothing can replace it."""
        ...

    def vacuum(self, site: Site, spark: "SparkSession", version: StoredVersion) -> int:
        """Delete a version's data; return the bytes freed, as far as known."""
        ...


@runtime_checkable
class Deliverable(Protocol):
    """A format whose versions other systems can deliver."""

    def find(self, site: Site, version: StoredVersion) -> Delivery | None:
        """Look for a delivery; return None if nothing arrived. Reads no rows."""
        ...

    def verify(
        self, site: Site, spark: "SparkSession", version: StoredVersion, delivery: Delivery
    ) -> Delivery:
        """Verify a delivery against its manifest before reading rows; raise on mismatch.

        Returns the delivery with what the manifest adds, such as the row count.
        """
        ...

    def bad_records(self, site: Site, spark: "SparkSession", version: StoredVersion) -> BadRecords:
        """Count the records of a version that cannot be read, and keep samples."""
        ...


@runtime_checkable
class Extractable(Protocol):
    """A format whose source changes in place, so each version is a copy of it."""

    def extract(self, site: Site, spark: "SparkSession", version: StoredVersion) -> Written:
        """Copy the source as it is now. Details hold the copy's `path` and `fingerprint`."""
        ...


@runtime_checkable
class SplitWriter(Protocol):
    """A format that can write a draft first and measure the write afterwards.

    Measuring takes another call to the server, which can run in parallel with the checks.
    """

    def write_data(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        """Write as `write` does, but return only what is known without another call."""
        ...

    def measure_write(
        self, site: Site, spark: "SparkSession", version: StoredVersion, mode: WriteMode
    ) -> Written:
        """Return rows, size and files of a write. May run while the draft is read."""
        ...


@runtime_checkable
class KeepsStatistics(Protocol):
    """A format that keeps column statistics of its files and skips files by condition.

    Checks with conditions that it supports are answered without reading rows.
    """

    keeps_statistics: bool


@runtime_checkable
class Adoptable(Protocol):
    """A format whose version directory a command may fill itself."""

    def adopt(self, site: Site, spark: "SparkSession", version: StoredVersion) -> Written:
        """Add the marker and manifest to what a command wrote; raise if it wrote nothing."""
        ...


class DuplicateKeysError(FloeError):
    """The rows to merge contain duplicate keys."""

    def __init__(
        self, dataset: str, keys: Sequence[str], duplicates: Sequence[Sequence[Any]]
    ) -> None:
        """`duplicates` holds the values of the keys, followed by the number of rows."""
        examples = [_describe_key(keys, values) for values in duplicates[:MOST_SHOWN]]
        more = ", and others" if len(duplicates) > MOST_SHOWN else ""
        super().__init__(
            f"The rows to merge into '{dataset}' have duplicate keys: "
            f"{'; '.join(examples)}{more}. Make the keys unique first."
        )


def _describe_key(keys: Sequence[str], values: Sequence[Any]) -> str:
    pairs = zip(keys, values, strict=False)
    named = ", ".join(f"{key} = {'null' if value is None else value}" for key, value in pairs)
    return f"{named} ({values[len(keys)]} rows)"


def column_difference(declared: Sequence[str], actual: Sequence[str]) -> str:
    """Describe missing, undeclared and duplicate columns; empty if there are none."""
    known = {name.lower() for name in actual}
    wanted = {name.lower() for name in declared}
    lower = [name.lower() for name in actual]
    parts = {
        "missing": [name for name in declared if name.lower() not in known],
        "not declared": [name for name in actual if name.lower() not in wanted],
        "duplicate": sorted({name for name in lower if lower.count(name) > 1}),
    }
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)
