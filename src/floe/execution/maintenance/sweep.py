"""Vacuum: remove versions past their retention, and data that nothing refers to.

Data is removed before its row becomes VACUUMED, so a killed vacuum can be repeated. Versions that
are READY, being read by a run, or under a legal hold are never removed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.stable_names import PENDING, details_of, is_made_here
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import (
    REMOVABLE,
    get_version_by_id,
    is_path_known,
    list_kept_tags,
    list_removable,
    list_tags_in_use,
    list_unfinished_of,
    newest_published_ids,
)
from floe.catalog.versions import ABANDONED, REJECTED, VACUUMED, advance_version
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.lake_tables import LakeTable
from floe.execution.formats.storage import remove_tree, storage_folder, tree_size
from floe.execution.leases import HeldLease, LeaseTakenError
from floe.execution.maintenance import lake
from floe.execution.maintenance.optimization import LAKE, Say, select_datasets, silent
from floe.execution.maintenance.retention import (
    is_in_force,
    own_location,
    removal_reason,
    retention_of,
    stray_folders,
)
from floe.execution.spark.session import LazySession, SparkSessions
from floe.execution.versions.version_access import format_of, stored_version, table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

MAX_WAIT = timedelta(minutes=10)
SNAPSHOT_AGE = timedelta(days=1)
"""Minimum age of expired snapshots by default: a query may still read them."""

Kind = Literal["version", "folder", "branch", "snapshot", "files", "file"]


@dataclass(frozen=True)
class Item:
    """Something that a vacuum removes."""

    dataset: str
    kind: Kind
    name: str
    reason: str
    bytes: int | None = None
    """The space this frees; None if unknown or counted by another item."""


@dataclass(frozen=True)
class Kept:
    """A version past its retention that is kept, and why."""

    dataset: str
    name: str
    reason: str


@dataclass(frozen=True)
class VacuumReport:
    """What a vacuum removed, or would remove."""

    dry_run: bool
    items: Sequence[Item] = ()
    kept: Sequence[Kept] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Datasets that are in use, each with its user."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Datasets that could not be vacuumed, each with the reason."""

    @property
    def freed(self) -> int:
        return sum(item.bytes or 0 for item in self.items)

    def plain(self) -> dict[str, Any]:
        """Return the report as plain values for JSON."""
        return {
            "dry_run": self.dry_run,
            "items": [asdict(item) for item in self.items],
            "kept": [asdict(kept) for kept in self.kept],
            "skipped": dict(self.skipped),
            "failed": dict(self.failed),
            "bytes": self.freed,
        }


@dataclass(frozen=True)
class VacuumOptions:
    """The options of a vacuum."""

    retain: timedelta | None = None
    dry_run: bool = False
    actor: str | None = None


def vacuum_datasets(
    workspace: Workspace,
    sparks: SparkSessions,
    names: Sequence[str] | None,
    options: VacuumOptions,
    say: Say = silent,
) -> VacuumReport:
    """Vacuum datasets one after another; a failure does not stop the others."""
    from pyspark.errors import PySparkException

    items: list[Item] = []
    kept: list[Kept] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    wanted = select_datasets(workspace, names)
    with LazySession(sparks) as session:
        for index, name in enumerate(wanted, start=1):
            say(f"{name} ({index} of {len(wanted)})")
            sweep = _Sweep(workspace, session, name, options)
            try:
                sweep.run()
            except LeaseTakenError as error:
                skipped[name] = str(error)
            except (FloeError, PySparkException, OSError) as error:
                failed[name] = str(error).strip() or type(error).__name__
            # Also report what was removed before a failure.
            items += sweep.items
            kept += sweep.kept
    return VacuumReport(options.dry_run, items, kept, skipped, failed)


class _Sweep:
    """One vacuum of one dataset."""

    def __init__(
        self, workspace: Workspace, session: LazySession, name: str, options: VacuumOptions
    ) -> None:
        self._workspace, self._session = workspace, session
        self._name, self._options = name, options
        self._spec, self._format = workspace.dataset(name), format_of(workspace, name)
        self._dataset_id = workspace.dataset_id(name)
        self._now = clock.now()
        self._retention = retention_of(workspace.site.spec, self._spec, options.retain)
        self.items: list[Item] = []
        self.kept: list[Kept] = []

    def run(self) -> None:
        hold = self._spec.legal_hold
        today = clock.today(self._workspace.site.spec.timezone)
        if hold is not None and is_in_force(hold, today):
            self.kept.append(Kept(self._name, "everything", f"legal hold: {hold.reason}"))
            return
        lease = table_lease(self._workspace, self._name)
        with self._workspace.leases.hold(lease, wait=MAX_WAIT) as held:
            versions = self._removable()
            for version, reason in versions:
                self._remove_version(version, reason, held)
            self._remove_folders(held)
            if self._spec.format == LAKE:
                self._sweep_table([version for version, _ in versions], held)

    def _removable(self) -> list[tuple[DatasetVersion, str]]:
        """Return the versions to remove; record the protected ones as kept."""
        count = self._retention.versions
        with self._workspace.catalog.reading() as session:
            newest = newest_published_ids(session, self._dataset_id, count) if count else set()
            past = [
                (version, reason)
                for version in list_removable(session, self._dataset_id)
                if is_made_here(version)
                and (reason := removal_reason(version, self._retention, newest, self._now))
            ]
            protection = self._protection(session)
        going = []
        for version, reason in past:
            if protector := protection.of(version):
                self.kept.append(Kept(self._name, version.version_tag, protector))
            else:
                going.append((version, reason))
        return going

    def _protection(self, session: "Session") -> "_Protection":
        return _Protection(list_tags_in_use(session, self._dataset_id))

    def _remove_version(self, version: DatasetVersion, reason: str, lease: HeldLease) -> None:
        size = _size_on_disk(version)
        note = f"{version.state}, {reason}"
        if not self._options.dry_run:
            lease.check()
            if protector := self._protected_now(version):
                self.kept.append(Kept(self._name, version.version_tag, protector))
                return
            size = self._remove_data(version) or size
            faults.point("vacuumed")
            self._mark_vacuumed(version, note)
        self.items.append(Item(self._name, "version", version.version_tag, note, size))

    def _protected_now(self, version: DatasetVersion) -> str:
        """Check the protection again, because earlier removals took time."""
        with self._workspace.catalog.reading() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            if row.state not in REMOVABLE:
                return f"it is {row.state} again"
            return self._protection(session).of(row)

    def _remove_data(self, version: DatasetVersion) -> int:
        stored = stored_version(self._workspace, self._name, version)
        site, spark = self._workspace.site, self._session.spark
        if version.state in (REJECTED, ABANDONED):
            # A killed writer may have left data that it should have discarded.
            self._format.discard(site, spark, stored)
        return self._format.vacuum(site, spark, stored)

    def _mark_vacuumed(self, version: DatasetVersion, reason: str) -> None:
        with self._workspace.catalog.writing() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            before = row.state
            advance_version(session, row, VACUUMED, actor=self._options.actor, reason=reason)
            record_audit(
                session,
                self._options.actor or "floe",
                "version.vacuum",
                "VERSION",
                f"{get_dataset(session, row.dataset_id).full_name}@{row.version_tag}",
                before={"state": before},
                after={"state": VACUUMED},
                reason=reason,
            )

    def _remove_folders(self, lease: HeldLease) -> None:
        for folder in self._stray_folders():
            size = tree_size(folder)
            if not self._options.dry_run:
                lease.check()
                remove_tree(folder)
            self.items.append(
                Item(self._name, "folder", str(folder), "no version refers to it", size)
            )

    def _stray_folders(self) -> Iterator[Path]:
        location = self._own_location()
        if location is None:
            return
        root = storage_folder(self._workspace.site, self._spec)
        with self._workspace.catalog.reading() as session:
            tags = list_kept_tags(session, self._dataset_id)
            since = get_dataset(session, self._dataset_id).created_at
            for folder in stray_folders(root, location, tags, since, self._now):
                # Compare the end of the path: the storage may be mounted elsewhere now.
                if not is_path_known(session, f"/{folder.relative_to(root).as_posix()}"):
                    yield folder

    def _own_location(self) -> str | None:
        """Return the pattern of the directories that floe writes for the dataset, if any."""
        if self._spec.format == "jdbc":
            from floe.execution.formats.jdbc import EXTRACTS

            return f"{EXTRACTS}/{self._name}/{{version}}"
        processes = self._workspace.site.spec.processes.values()
        written = {output.dataset for process in processes for output in process.outputs.values()}
        own = isinstance(self._format, DirectoryFormat) and self._name in written
        return own_location(self._name, self._spec.location) if own else None

    def _sweep_table(self, gone: Sequence[DatasetVersion], lease: HeldLease) -> None:
        """Remove the table's unused branches, snapshots and files."""
        spark = self._session.spark
        table = LakeTable.of(self._workspace.lake, self._name)
        if not lake.exists(spark, table):
            return
        lease.check()
        leaving = {version.version_tag for version in gone} | self._sweep_branches(table)
        age = SNAPSHOT_AGE if self._retention.age is None else self._retention.age
        before = self._now - age
        snapshots = lake.expired_snapshots(spark, table, before, leaving)
        if snapshots:
            files = lake.find_expired_files(spark, table, snapshots)
            if not self._options.dry_run:
                lake.expire_snapshots(spark, table, before)
            self._report_snapshots(snapshots, files)
        remove = not self._options.dry_run
        for path, size in lake.orphan_files(spark, table, self._now, remove=remove):
            self.items.append(Item(self._name, "file", path, "no snapshot refers to it", size))

    def _sweep_branches(self, table: LakeTable) -> set[str]:
        with self._workspace.catalog.reading() as session:
            unfinished = list_unfinished_of(session, self._dataset_id)
            in_use = {str(details_of(version).get("branch")) for version in unfinished}
        stray = set(lake.stray_branches(self._session.spark, table, in_use))
        for branch in sorted(stray):
            if not self._options.dry_run:
                lake.drop_branch(self._session.spark, table, branch)
            reason = "no version is being written on it"
            self.items.append(Item(self._name, "branch", branch, reason))
        return stray

    def _report_snapshots(
        self, snapshots: Sequence[lake.Snapshot], files: lake.ExpiredFiles | None
    ) -> None:
        for snapshot in snapshots:
            reason = f"from {snapshot.committed_at:%Y-%m-%d %H:%M}Z, nothing refers to it"
            self.items.append(Item(self._name, "snapshot", snapshot.snapshot_id, reason))
        if files is not None and files.count:
            name = f"{files.count} data file{'s' if files.count > 1 else ''}"
            reason = "only expired snapshots use them"
            self.items.append(Item(self._name, "files", name, reason, files.size))


@dataclass(frozen=True)
class _Protection:
    """Protects versions of a dataset that are past their retention."""

    being_read: dict[str, str]

    def of(self, version: DatasetVersion) -> str:
        """Return what protects a version, or an empty string."""
        if version.legal_hold:
            return "legal hold"
        if run := self.being_read.get(version.version_tag):
            return f"run {run} reads it"
        if PENDING in details_of(version):
            return "its retraction is not finished"
        return ""


def _size_on_disk(version: DatasetVersion) -> int | None:
    """Return the size of a version's own folder; None for lake tables and deliveries."""
    if version.path is None or details_of(version).get("delivered"):
        return None
    folder = Path(version.path)
    return tree_size(folder) if folder.is_absolute() and folder.is_dir() else None
