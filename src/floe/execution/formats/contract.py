"""What every format does: write a version unseen, publish it, read it again, let it go.

A write has three durable steps, and the catalog's row of the version leads through them. The
format is told where the version is to live before anything is written, so that whatever a killed
run left behind can be found again: `discard` and `publish` may be called at any time, any number
of times.
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


@dataclass(frozen=True)
class VersionPlace:
    """One version of a dataset, and all that leads to where it lives."""

    dataset: str
    spec: DatasetSpec
    tag: str
    business_date: date
    partition: str | None = None
    path: str | None = None
    """The directory, the files or the table, as the catalog keeps it."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What the format noted when the version was located, written or published."""
    run_id: str | None = None

    @property
    def key(self) -> str:
        """The partition, or the business date."""
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class Spot:
    """Where a version is going to live. The catalog knows it before anything is written."""

    path: str
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Written:
    """What a write made."""

    rows: int | None = None
    size: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    files: int | None = None


@dataclass(frozen=True)
class BadRecords:
    """Lines that could not be read, when the policy is to drop them."""

    count: int = 0
    samples: Sequence[str] = ()


@dataclass(frozen=True)
class Delivery:
    """What somebody else delivered for a version: new when its fingerprint is."""

    path: str
    fingerprint: str
    size: int | None = None
    rows: int | None = None
    """As a manifest promises, once that was verified."""
    details: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""
    """Why it is rejected without being read, such as a link that leads out of the storage."""


class DeliveryRejectedError(FloeError):
    """A delivery is not what its manifest, its format or its schema says."""

    def __init__(self, dataset: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The delivery of '{dataset}' was rejected: {reason}")


class DeliveryIncompleteError(FloeError):
    """A delivery is not there, or not all of it yet. It may still come: nothing is rejected."""

    def __init__(self, dataset: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The delivery of '{dataset}' is not complete yet: {reason}")


class VersionUnreadableError(FloeError):
    """A version cannot be read, though the catalog knows it."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        self.reason = reason
        super().__init__(f"Version {tag} of '{dataset}' cannot be read: {reason}")


class WriteModeError(FloeError):
    """A format cannot write in the way a process asks for."""

    def __init__(self, dataset: str, name: str, mode: str, can: Sequence[str]) -> None:
        super().__init__(
            f"'{dataset}' has the format {name}, which cannot be written with '{mode}'. "
            f"Use one of: {', '.join(can)}."
        )


class Format(Protocol):
    """How the versions of datasets of one format are read and written."""

    name: str
    modes: Sequence[WriteMode]

    def locate(self, site: Site, place: VersionPlace) -> Spot:
        """Say where a new version is going to live. Nothing is written yet."""
        ...

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        """Write a version where no reader sees it. A second call replaces what the first left."""
        ...

    def read_draft(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        """Read what was written and is not published, to check it."""
        ...

    def publish(
        self, site: Site, spark: "SparkSession", place: VersionPlace, *, newest: bool
    ) -> Mapping[str, Any]:
        """Let readers see it; under the stable name too, if no later date is there.

        Returns what is to be noted with the version. Once published, it does nothing.
        """
        ...

    def is_whole(self, site: Site, spark: "SparkSession", place: VersionPlace) -> bool:
        """Tell, after a crash, whether all that was to be published is still there."""
        ...

    def discard(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        """Remove what an unfinished or rejected version left. Nothing there is fine."""
        ...

    def read(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        """Read a published version."""
        ...

    def show(
        self, site: Site, spark: "SparkSession", place: VersionPlace
    ) -> Mapping[str, Any] | None:
        """Put a version (back) under the stable name, because what was there was retracted."""
        ...

    def hide(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        """Take a version off the stable name, because it was retracted and none can replace it."""
        ...

    def vacuum(self, site: Site, spark: "SparkSession", place: VersionPlace) -> int:
        """Remove a version's data for good; return the bytes that this frees, where known."""
        ...


@runtime_checkable
class Delivered(Protocol):
    """A format whose versions others may deliver."""

    def find(self, site: Site, place: VersionPlace) -> Delivery | None:
        """Look for a delivery; None when nothing is there. Cheap: no row is read."""
        ...

    def verify(
        self, site: Site, spark: "SparkSession", place: VersionPlace, delivery: Delivery
    ) -> Delivery:
        """Verify a delivery against its manifest before a row is read; raise when it is wrong.

        Returns it with what became known, such as the promised rows.
        """
        ...

    def bad_records(self, site: Site, spark: "SparkSession", place: VersionPlace) -> BadRecords:
        """Count the lines of a version that cannot be read, and keep some."""
        ...


@runtime_checkable
class Extracts(Protocol):
    """A format whose source cannot be kept, so that a version of it is a copy."""

    def extract(self, site: Site, spark: "SparkSession", place: VersionPlace) -> Written:
        """Copy what is there now. The details hold the copy's `path` and its `fingerprint`."""
        ...


@runtime_checkable
class Settles(Protocol):
    """A format whose drafts can be read before all is known of them.

    To ask what a write made is a way to the server of its own, and need not come before the checks.
    """

    def put(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        """Write as `write` does, and note only what is known by itself."""
        ...

    def settle(
        self, site: Site, spark: "SparkSession", place: VersionPlace, mode: WriteMode
    ) -> Written:
        """Ask for the rest. It may be asked for while the draft is read."""
        ...


@runtime_checkable
class KeepsStatistics(Protocol):
    """A format that knows of its files what they hold, and reads none that a condition leaves out.

    Checks whose conditions it understands are then answered without reading a row.
    """

    keeps_statistics: bool


@runtime_checkable
class Adopts(Protocol):
    """A format whose versions a command may write by itself where they are to live."""

    def adopt(self, site: Site, spark: "SparkSession", place: VersionPlace) -> Written:
        """Complete what is there: a marker, a manifest. Nothing there is an error."""
        ...
