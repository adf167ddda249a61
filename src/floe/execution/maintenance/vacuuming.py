"""Remove what is past its retention, and what nobody knows any more.

Data goes before its row says so: a vacuum that is killed in between is repeated, and finds
nothing to remove the second time. What is READY, is being read by a run, or is under a legal hold
is never touched.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from floe import clock
from floe.catalog.audit import record_audit
from floe.catalog.datasets import get_dataset
from floe.catalog.retention import (
    REMOVABLE,
    is_place_known,
    list_being_read,
    list_kept_tags,
    list_removable,
    list_unfinished_of,
    newest_good,
)
from floe.catalog.shown import PENDING, details_of, is_made_here
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import (
    ABANDONED,
    REJECTED,
    VACUUMED,
    advance_version,
    get_version_by_id,
)
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.formats.directories import DirectoryFormat
from floe.execution.formats.iceberg.tables import LakeTable
from floe.execution.formats.storage import remove_tree, storage_folder, tree_size
from floe.execution.leases import Held, LeaseTakenError
from floe.execution.maintenance import lake
from floe.execution.maintenance.choosing import LAKE, Say, chosen, silent
from floe.execution.maintenance.folders import own_location, stray_folders
from floe.execution.maintenance.items import Item, Kept, VacuumReport
from floe.execution.maintenance.retention import is_in_force, retention_of, why_past
from floe.execution.maintenance.sessions import LateSession
from floe.execution.sparks import Sparks
from floe.execution.versions.places import format_of, place_of
from floe.execution.versions.tables import table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

LONGEST_WAIT = timedelta(minutes=10)
SNAPSHOT_AGE = timedelta(days=1)
"""How long snapshots outlive their versions where no age is declared: a query may still read."""


@dataclass(frozen=True)
class VacuumOrder:
    """What is asked of a vacuum."""

    retain: timedelta | None = None
    dry_run: bool = False
    actor: str | None = None


def vacuum_datasets(
    workspace: Workspace,
    sparks: Sparks,
    names: Sequence[str] | None,
    order: VacuumOrder,
    say: Say = silent,
) -> VacuumReport:
    """Vacuum datasets one after another. What is wrong with one does not keep the others dirty."""
    from pyspark.errors import PySparkException

    items: list[Item] = []
    kept: list[Kept] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    wanted = chosen(workspace, names)
    with LateSession(sparks) as session:
        for place, name in enumerate(wanted, start=1):
            say(f"{name} ({place} of {len(wanted)})")
            sweep = _Sweep(workspace, session, name, order)
            try:
                sweep.run()
            except LeaseTakenError as error:
                skipped[name] = str(error)
            except (FloeError, PySparkException, OSError) as error:
                failed[name] = str(error).strip() or type(error).__name__
            # What went before it failed is gone all the same.
            items += sweep.items
            kept += sweep.kept
    return VacuumReport(order.dry_run, items, kept, skipped, failed)


class _Sweep:
    """One vacuum of one dataset."""

    def __init__(
        self, workspace: Workspace, session: LateSession, name: str, order: VacuumOrder
    ) -> None:
        self._workspace, self._session = workspace, session
        self._name, self._order = name, order
        self._spec, self._format = workspace.dataset(name), format_of(workspace, name)
        self._number = workspace.dataset_id(name)
        self._now = clock.now()
        self._retention = retention_of(workspace.site.spec, self._spec, order.retain)
        self.items: list[Item] = []
        self.kept: list[Kept] = []

    def run(self) -> None:
        hold = self._spec.legal_hold
        today = clock.today(self._workspace.site.spec.timezone)
        if hold is not None and is_in_force(hold, today):
            self.kept.append(Kept(self._name, "everything", f"legal hold: {hold.reason}"))
            return
        lease = table_lease(self._workspace, self._name)
        with self._workspace.leases.hold(lease, wait=LONGEST_WAIT) as held:
            versions = self._past()
            for version, reason in versions:
                self._remove_version(version, reason, held)
            self._remove_folders(held)
            if self._spec.format == LAKE:
                self._sweep_table([version for version, _ in versions], held)

    def _past(self) -> list[tuple[DatasetVersion, str]]:
        """Choose the versions that go, and note those that something protects."""
        count = self._retention.versions
        with self._workspace.catalog.reading() as session:
            newest = newest_good(session, self._number, count) if count else set()
            past = [
                (version, reason)
                for version in list_removable(session, self._number)
                if is_made_here(version)
                and (reason := why_past(version, self._retention, newest, self._now))
            ]
            shields = self._shields(session)
        going = []
        for version, reason in past:
            if shield := shields.of(version):
                self.kept.append(Kept(self._name, version.version_tag, shield))
            else:
                going.append((version, reason))
        return going

    def _shields(self, session: "Session") -> "_Shields":
        return _Shields(list_being_read(session, self._number))

    def _remove_version(self, version: DatasetVersion, reason: str, lease: Held) -> None:
        size = _size_on_disk(version)
        said = f"{version.state}, {reason}"
        if not self._order.dry_run:
            lease.check()
            if shield := self._shielded_now(version):
                self.kept.append(Kept(self._name, version.version_tag, shield))
                return
            size = self._remove_data(version) or size
            faults.point("vacuumed")
            self._close_row(version, said)
        self.items.append(Item(self._name, "version", version.version_tag, said, size))

    def _shielded_now(self, version: DatasetVersion) -> str:
        """Look once more: removing those before it took its time."""
        with self._workspace.catalog.reading() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            if row.state not in REMOVABLE:
                return f"it is {row.state} again"
            return self._shields(session).of(row)

    def _remove_data(self, version: DatasetVersion) -> int:
        place = place_of(self._workspace, self._name, version)
        site, spark = self._workspace.site, self._session.spark
        if version.state in (REJECTED, ABANDONED):
            # Killed at the wrong moment, its writer may have left what it was to discard.
            self._format.discard(site, spark, place)
        return self._format.vacuum(site, spark, place)

    def _close_row(self, version: DatasetVersion, reason: str) -> None:
        with self._workspace.catalog.writing() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            before = row.state
            advance_version(session, row, VACUUMED, actor=self._order.actor, reason=reason)
            record_audit(
                session,
                self._order.actor or "floe",
                "version.vacuum",
                "VERSION",
                f"{get_dataset(session, row.dataset_id).full_name}@{row.version_tag}",
                before={"state": before},
                after={"state": VACUUMED},
                reason=reason,
            )

    def _remove_folders(self, lease: Held) -> None:
        for folder in self._stray_folders():
            size = tree_size(folder)
            if not self._order.dry_run:
                lease.check()
                remove_tree(folder)
            self.items.append(
                Item(self._name, "folder", str(folder), "no version leads to it", size)
            )

    def _stray_folders(self) -> Iterator[Path]:
        location = self._own_location()
        if location is None:
            return
        root = storage_folder(self._workspace.site, self._spec)
        with self._workspace.catalog.reading() as session:
            tags = list_kept_tags(session, self._number)
            since = get_dataset(session, self._number).created_at
            for folder in stray_folders(root, location, tags, since, self._now):
                # By its end: the storage may be mounted under another name than it once was.
                if not is_place_known(session, f"/{folder.relative_to(root).as_posix()}"):
                    yield folder

    def _own_location(self) -> str | None:
        """Return where floe keeps files of the dataset; None where others do, or nobody."""
        if self._spec.format == "jdbc":
            from floe.execution.formats.jdbc import EXTRACTS

            return f"{EXTRACTS}/{self._name}/{{version}}"
        processes = self._workspace.site.spec.processes.values()
        written = {one.dataset for process in processes for one in process.outputs.values()}
        own = isinstance(self._format, DirectoryFormat) and self._name in written
        return own_location(self._name, self._spec.location) if own else None

    def _sweep_table(self, gone: Sequence[DatasetVersion], lease: Held) -> None:
        """Remove what only the table itself knows: branches, snapshots, files."""
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
            files = lake.doomed_files(spark, table, snapshots)
            if not self._order.dry_run:
                lake.expire_snapshots(spark, table, before)
            self._note_snapshots(snapshots, files)
        remove = not self._order.dry_run
        for path, size in lake.orphan_files(spark, table, self._now, remove=remove):
            self.items.append(Item(self._name, "file", path, "no snapshot knows it", size))

    def _sweep_branches(self, table: LakeTable) -> set[str]:
        with self._workspace.catalog.reading() as session:
            unfinished = list_unfinished_of(session, self._number)
            in_use = {str(details_of(version).get("branch")) for version in unfinished}
        stray = set(lake.stray_branches(self._session.spark, table, in_use))
        for branch in sorted(stray):
            if not self._order.dry_run:
                lake.drop_branch(self._session.spark, table, branch)
            reason = "no version is being written on it"
            self.items.append(Item(self._name, "branch", branch, reason))
        return stray

    def _note_snapshots(
        self, snapshots: Sequence[lake.Snapshot], files: lake.DoomedFiles | None
    ) -> None:
        for one in snapshots:
            reason = f"of {one.committed_at:%Y-%m-%d %H:%M}Z, nothing refers to it"
            self.items.append(Item(self._name, "snapshot", one.number, reason))
        if files is not None and files.count:
            name = f"{files.count} data file{'s' if files.count > 1 else ''}"
            reason = "only those snapshots need them"
            self.items.append(Item(self._name, "files", name, reason, files.size))


@dataclass(frozen=True)
class _Shields:
    """What keeps versions of a dataset though they are past their retention."""

    being_read: dict[str, str]

    def of(self, version: DatasetVersion) -> str:
        """Say what protects a version; nothing if it may go."""
        if version.legal_hold:
            return "legal hold"
        if run := self.being_read.get(version.version_tag):
            return f"run {run} reads it"
        if PENDING in details_of(version):
            return "its retraction is not finished"
        return ""


def _size_on_disk(version: DatasetVersion) -> int | None:
    """Return the bytes of a version's own folder; a lake table counts its files by itself."""
    if version.path is None or details_of(version).get("delivered"):
        return None
    folder = Path(version.path)
    return tree_size(folder) if folder.is_absolute() and folder.is_dir() else None
