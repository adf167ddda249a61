"""Versions for code that is no process: a frame that an asset returns, and frames that it takes.

The write is that of processes: reserve, write, audit, publish, under the lease of the table. What
differs is who reports the run: nothing is reported here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

from floe.catalog.datasets import ACTIVE, get_dataset
from floe.catalog.errors import DatasetExistsError, DatasetNotFoundError
from floe.catalog.projects.undeclared import note_undeclared
from floe.catalog.schemas import Column, list_columns
from floe.catalog.shown import details_of
from floe.catalog.versions import READY, REJECTED, SUPERSEDED, latest_ready, list_of_run
from floe.errors import FloeError
from floe.execution.cancelling import Cancellation
from floe.execution.failures import reason_of
from floe.execution.formats.contract import DeliveryRejectedError
from floe.execution.formats.iceberg.tables import LakeTable
from floe.execution.inputs import input_frame
from floe.execution.outages import patiently
from floe.execution.planning import PlannedInput
from floe.execution.spark.queries import query
from floe.execution.spark.session import interrupt
from floe.execution.versions.arrivals import MISSING, Arrival, is_delivered, receive
from floe.execution.versions.audits import recorded_audit
from floe.execution.versions.drafts import (
    audit_draft,
    contract_kept,
    publish_draft,
    reserve_draft,
    write_draft,
)
from floe.execution.versions.letting_go import let_go_on_failure
from floe.execution.versions.places import place_of
from floe.execution.versions.tables import table_lease
from floe.execution.versions.writers import WriterSession
from floe.execution.workspace import Workspace
from floe.quality import Verdict
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

    from floe.catalog.tables import DatasetVersion

LONGEST_WAIT = timedelta(days=1)
MADE = frozenset({READY, SUPERSEDED})


class FrameNotWrittenError(FloeError):
    """The frame of an asset did not become a version."""

    def __init__(self, dataset: str, reason: str) -> None:
        super().__init__(f"What was returned for '{dataset}' was not written: {reason}")


class NothingToReadError(FloeError):
    """An asset takes a dataset that has no version for the date in question."""

    def __init__(self, dataset: str, when: str, reason: str = "") -> None:
        told = f" {reason.rstrip('.')}." if reason else ""
        super().__init__(
            f"'{dataset}' has no READY version {when}.{told} Make one first; "
            f"what there is: floe versions {dataset}"
        )


@dataclass(frozen=True)
class Moment:
    """What a version is made for: a business date, and a partition where that says more."""

    business_date: date
    partition: str | None = None

    @property
    def key(self) -> str:
        return self.partition or self.business_date.isoformat()


@dataclass(frozen=True)
class FrameWish:
    """Which version a frame is to become."""

    dataset: str
    moment: Moment
    run_id: str
    mode: WriteMode = "replace"


@dataclass(frozen=True)
class MadeVersion:
    """A version that a run made, or one of its that was rejected, with all that is known of it."""

    dataset: str
    tag: str
    state: str
    rows: int | None = None
    size: int | None = None
    snapshot: str | None = None
    columns: Sequence[Column] = ()
    verdicts: Sequence[Verdict] = field(default=())


def made_by(workspace: Workspace, run_id: str) -> list[MadeVersion]:
    """Return the versions that a run made or that were rejected, as the catalog has them."""
    with workspace.catalog.reading() as session:
        return [
            _made(session, version)
            for version in list_of_run(session, run_id)
            if version.state in MADE or version.state == REJECTED
        ]


def write_frame(
    workspace: Workspace,
    frame: "DataFrame",
    wish: FrameWish,
    *,
    cancellation: Cancellation | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> MadeVersion:
    """Make a version of a frame, in the frame's own session. The same run again writes nothing."""
    _ensure_known(workspace, wish.dataset)
    before = _made_before(workspace, wish)
    if before is not None:
        return before
    cancellation = cancellation or Cancellation()
    spark: SparkSession = frame.sparkSession  # type: ignore[assignment]
    cancellation.on_cancel(partial(interrupt, spark))
    lease_name = table_lease(workspace, wish.dataset)
    with workspace.leases.hold(lease_name, wait=LONGEST_WAIT) as lease:
        draft = reserve_draft(
            workspace,
            wish.dataset,
            wish.moment.business_date,
            partition=wish.moment.partition,
            run_id=wish.run_id,
            mode=wish.mode,
            lease=lease,
            writer=WriterSession(spark.session_id),
        )
        reserved = {wish.dataset: draft}
        with (
            _explained(wish.dataset),
            let_go_on_failure(workspace, spark, reserved, cancellation, say),
        ):
            with contract_kept(workspace, spark, draft):
                draft = write_draft(workspace, spark, draft, frame)
            draft = audit_draft(workspace, spark, draft)
            patiently(partial(publish_draft, workspace, spark, draft), cancellation)
    say(f"{wish.dataset}: version {draft.place.tag} is ready, {draft.rows:,} rows")
    made = _made_before(workspace, wish)
    assert made is not None, "a version that was published is READY"
    return made


def look_for_deliveries(
    workspace: Workspace, spark: "SparkSession", dataset: str, days: Iterable[date]
) -> list[Arrival]:
    """Register what others have delivered of a dataset for some dates, if others deliver it.

    Raise if one was rejected: a version of before must not be read in its place.
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
    wanted: Sequence[Moment],
    *,
    until: date,
    arrivals: Sequence[Arrival] = (),
) -> PlannedInput:
    """Find the versions that an asset reads: those of some moments, else the newest up to a date.

    Of several moments those count that are there. `arrivals` tell why there are none.
    """
    with workspace.catalog.reading() as session:
        number = workspace.dataset_id(dataset, session)
        found = [
            latest_ready(session, number, on=moment.business_date, partition_key=moment.partition)
            for moment in wanted
        ] or [latest_ready(session, number, until=until)]
        versions = [version for version in found if version is not None]
        if not versions:
            reason = "; ".join(one.reason for one in arrivals if one.state == MISSING)
            raise NothingToReadError(dataset, _when(wanted, until), reason)
        return PlannedInput(
            dataset,
            dataset,
            tuple(place_of(workspace, dataset, version) for version in versions),
            tuple(version.dataset_version_id for version in versions),
        )


def read_table(
    workspace: Workspace, spark: "SparkSession", dataset: str, snapshot: str | None
) -> "DataFrame":
    """Return a lake table as it was at a snapshot; without one, as it is: a view has none."""
    table = LakeTable.of(workspace.lake, dataset)
    return spark.table(table.sql) if snapshot is None else query(spark, table.at(snapshot))


def read_input(workspace: Workspace, spark: "SparkSession", planned: PlannedInput) -> "DataFrame":
    """Return what was found as one frame."""
    return input_frame(workspace, spark, planned)


def _when(wanted: Sequence[Moment], until: date) -> str:
    if not wanted:
        return f"up to {until}"
    keys = [moment.key for moment in wanted]
    return f"for {keys[0]}" if len(keys) == 1 else f"for any of {keys[0]} to {keys[-1]}"


def _ensure_known(workspace: Workspace, dataset: str) -> None:
    """Let the catalog know a dataset that floe.yaml does not declare."""
    if _is_known(workspace, dataset):
        return
    spec = workspace.dataset(dataset)
    try:
        with workspace.catalog.writing() as session:
            note_undeclared(session, workspace.site.spec, dataset, spec, lake=workspace.lake)
    except DatasetExistsError:
        # Another run was first.
        return


def _is_known(workspace: Workspace, dataset: str) -> bool:
    with workspace.catalog.reading() as session:
        try:
            number = workspace.dataset_id(dataset, session)
        except DatasetNotFoundError:
            return False
        return get_dataset(session, number).status == ACTIVE


def _made_before(workspace: Workspace, wish: FrameWish) -> MadeVersion | None:
    made = [one for one in made_by(workspace, wish.run_id) if one.state in MADE]
    return next((one for one in made if one.dataset == wish.dataset), None)


def _made(session: "Session", version: "DatasetVersion") -> MadeVersion:
    snapshot = details_of(version).get("snapshot")
    return MadeVersion(
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
def _explained(dataset: str) -> Iterator[None]:
    """Say of which asset the frame was that could not be written."""
    try:
        yield
    except FloeError:
        raise
    except Exception as error:
        raise FrameNotWrittenError(dataset, reason_of(error)) from error
