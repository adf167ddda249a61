"""Write the frame an asset returns as a version, and read its input versions.

The steps are those of a process: reserve, write, audit and publish under the table's lease. The
difference is that the run is not reported here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

from floe.catalog.datasets import ACTIVE, get_dataset
from floe.catalog.errors import DatasetExistsError, DatasetNotFoundError
from floe.catalog.projects.datasets import add_undeclared_dataset
from floe.catalog.schemas import Column, list_columns
from floe.catalog.stable_names import details_of
from floe.catalog.version_queries import latest_ready, list_run_versions
from floe.catalog.versions import READY, REJECTED, SUPERSEDED
from floe.errors import FloeError
from floe.execution.cancellation import Cancellation
from floe.execution.failures import reason_of, wait_out_outages
from floe.execution.formats.contract import DeliveryRejectedError
from floe.execution.formats.lake_tables import LakeTable
from floe.execution.frames import input_frame
from floe.execution.planning import PlannedInput
from floe.execution.spark.queries import query
from floe.execution.spark.session import interrupt
from floe.execution.versions.arrivals import MISSING, Arrival, is_delivered, receive
from floe.execution.versions.audits import recorded_audit
from floe.execution.versions.drafts import (
    abandon_on_failure,
    audit_draft,
    publish_draft,
    reject_broken_contract,
    reserve_draft,
    write_draft,
)
from floe.execution.versions.version_access import WriterSession, stored_version, table_lease
from floe.execution.workspace import Workspace
from floe.quality import Verdict
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

    from floe.catalog.tables import DatasetVersion

MAX_WAIT = timedelta(days=1)
PUBLISHED = frozenset({READY, SUPERSEDED})


class FrameNotWrittenError(FloeError):
    """The frame that an asset returned could not be written."""

    def __init__(self, dataset: str, reason: str) -> None:
        super().__init__(f"The frame returned for '{dataset}' was not written: {reason}")


class MissingVersionError(FloeError):
    """An asset reads a dataset that has no READY version for the date."""

    def __init__(self, dataset: str, when: str, reason: str = "") -> None:
        detail = f" {reason.rstrip('.')}." if reason else ""
        super().__init__(
            f"'{dataset}' has no READY version {when}.{detail} Create one first. "
            f"List its versions with: floe versions {dataset}"
        )


@dataclass(frozen=True)
class VersionKey:
    """A version's business date, and its partition unless that is just the date."""

    business_date: date
    partition: str | None = None

    @property
    def key(self) -> str:
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class FrameTarget:
    """The version to write a frame as."""

    dataset: str
    key: VersionKey
    run_id: str
    mode: WriteMode = "replace"


@dataclass(frozen=True)
class OutputVersion:
    """A version that a run published, or one that was rejected, as the catalog has it."""

    dataset: str
    tag: str
    state: str
    rows: int | None = None
    size: int | None = None
    snapshot: str | None = None
    columns: Sequence[Column] = ()
    verdicts: Sequence[Verdict] = field(default=())


def output_versions(workspace: Workspace, run_id: str) -> list[OutputVersion]:
    """Return the published and the rejected versions of a run."""
    with workspace.catalog.reading() as session:
        return [
            _output_version(session, version)
            for version in list_run_versions(session, run_id)
            if version.state in PUBLISHED or version.state == REJECTED
        ]


def write_frame(
    workspace: Workspace,
    frame: "DataFrame",
    target: FrameTarget,
    *,
    cancellation: Cancellation | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> OutputVersion:
    """Write a frame as a version in its Spark session. Repeating a run does nothing."""
    _ensure_known(workspace, target.dataset)
    existing = _already_written(workspace, target)
    if existing is not None:
        return existing
    cancellation = cancellation or Cancellation()
    spark: SparkSession = frame.sparkSession  # type: ignore[assignment]
    cancellation.on_cancel(partial(interrupt, spark))
    lease_name = table_lease(workspace, target.dataset)
    with workspace.leases.hold(lease_name, wait=MAX_WAIT) as lease:
        draft = reserve_draft(
            workspace,
            target.dataset,
            target.key.business_date,
            partition=target.key.partition,
            run_id=target.run_id,
            mode=target.mode,
            lease=lease,
            writer=WriterSession(spark.session_id),
        )
        reserved = {target.dataset: draft}
        with (
            _named_errors(target.dataset),
            abandon_on_failure(workspace, spark, reserved, cancellation, say),
        ):
            with reject_broken_contract(workspace, spark, draft):
                draft = write_draft(workspace, spark, draft, frame)
            draft = audit_draft(workspace, spark, draft)
            wait_out_outages(partial(publish_draft, workspace, spark, draft), cancellation)
    say(f"{target.dataset}: version {draft.stored.tag} is ready, {draft.rows:,} rows")
    version = _already_written(workspace, target)
    assert version is not None, "a version that was published is READY"
    return version


def receive_deliveries(
    workspace: Workspace, spark: "SparkSession", dataset: str, days: Iterable[date]
) -> list[Arrival]:
    """Register a dataset's deliveries for some dates, if other systems deliver it.

    Raise if a delivery was rejected, so that an older version is not read instead.
    """
    if not is_delivered(workspace, dataset):
        return []
    arrivals = [receive(workspace, spark, dataset, day) for day in sorted(set(days))]
    for arrival in arrivals:
        if arrival.state == REJECTED:
            raise DeliveryRejectedError(dataset, arrival.reason)
    return arrivals


def find_input(
    workspace: Workspace,
    dataset: str,
    wanted: Sequence[VersionKey],
    *,
    until: date,
    arrivals: Sequence[Arrival] = (),
) -> PlannedInput:
    """Find an asset's input versions: those of `wanted`, else the newest up to a date.

    Missing versions are skipped if another exists. `arrivals` explain why all are missing.
    """
    with workspace.catalog.reading() as session:
        dataset_id = workspace.dataset_id(dataset, session)
        candidates = [
            latest_ready(session, dataset_id, on=key.business_date, partition_key=key.partition)
            for key in wanted
        ] or [latest_ready(session, dataset_id, until=until)]
        versions = [version for version in candidates if version is not None]
        if not versions:
            reason = "; ".join(arrival.reason for arrival in arrivals if arrival.state == MISSING)
            raise MissingVersionError(dataset, _when(wanted, until), reason)
        return PlannedInput(
            dataset,
            dataset,
            tuple(stored_version(workspace, dataset, version) for version in versions),
        )


def read_table(
    workspace: Workspace, spark: "SparkSession", dataset: str, snapshot: str | None
) -> "DataFrame":
    """Return a lake table at a snapshot; without a snapshot, its current rows (views)."""
    table = LakeTable.of(workspace.lake, dataset)
    return spark.table(table.sql) if snapshot is None else query(spark, table.at(snapshot))


def read_input(workspace: Workspace, spark: "SparkSession", planned: PlannedInput) -> "DataFrame":
    """Return the planned versions as one frame."""
    return input_frame(workspace, spark, planned)


def _when(wanted: Sequence[VersionKey], until: date) -> str:
    if not wanted:
        return f"up to {until}"
    keys = [key.key for key in wanted]
    return f"for {keys[0]}" if len(keys) == 1 else f"for any of {keys[0]} to {keys[-1]}"


def _ensure_known(workspace: Workspace, dataset: str) -> None:
    """Add a dataset that floe.yaml does not declare to the catalog."""
    if _is_known(workspace, dataset):
        return
    spec = workspace.dataset(dataset)
    try:
        with workspace.catalog.writing() as session:
            add_undeclared_dataset(session, workspace.site.spec, dataset, spec, lake=workspace.lake)
    except DatasetExistsError:
        # Another run added it first.
        return


def _is_known(workspace: Workspace, dataset: str) -> bool:
    with workspace.catalog.reading() as session:
        try:
            dataset_id = workspace.dataset_id(dataset, session)
        except DatasetNotFoundError:
            return False
        return get_dataset(session, dataset_id).status == ACTIVE


def _already_written(workspace: Workspace, target: FrameTarget) -> OutputVersion | None:
    versions = [
        version
        for version in output_versions(workspace, target.run_id)
        if version.state in PUBLISHED
    ]
    return next((version for version in versions if version.dataset == target.dataset), None)


def _output_version(session: "Session", version: "DatasetVersion") -> OutputVersion:
    snapshot = details_of(version).get("snapshot")
    return OutputVersion(
        get_dataset(session, version.dataset_id).name,
        version.version_tag,
        version.state,
        version.row_count,
        version.size_bytes,
        None if snapshot is None else str(snapshot),
        list_columns(session, version.schema_hash) if version.schema_hash else (),
        recorded_audit(session, version).verdicts,
    )


@contextmanager
def _named_errors(dataset: str) -> Iterator[None]:
    """Name the dataset in errors that do not."""
    try:
        yield
    except FloeError:
        raise
    except Exception as error:
        raise FrameNotWrittenError(dataset, reason_of(error)) from error
