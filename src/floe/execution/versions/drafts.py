"""Write, audit, publish: a version goes through three durable steps, and none is skipped.

The catalog reserves the tag and knows where the version is going to live before a byte is
written. It is told PUBLISHING with all that was checked, then the lake lets readers see it, then
the catalog says READY. Whatever ends in between is repaired from what the catalog knows.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from floe.catalog.edges import list_consumers
from floe.catalog.schemas import Column, list_columns, store_schemas
from floe.catalog.shown import details_of, with_details
from floe.catalog.versions import (
    ABANDONED,
    PUBLISHING,
    READY,
    REJECTED,
    WRITING,
    advance_version,
    get_version_by_id,
    has_later_ready,
    latest_ready,
    reserve_version,
)
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.formats.contract import (
    Format,
    Settles,
    VersionPlace,
    WriteModeError,
    Written,
)
from floe.execution.leases import Held
from floe.execution.versions.audits import (
    Audited,
    audit_version,
    broken_contract,
    record_audit,
)
from floe.execution.versions.contracts import ContractBrokenError, fit_columns
from floe.execution.versions.places import format_of, place_of
from floe.execution.versions.writers import WriterSession
from floe.execution.workspace import Workspace
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session


class VersionRejectedError(FloeError):
    """A version was written and did not pass its checks."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        self.dataset, self.tag, self.reason = dataset, tag, reason
        super().__init__(f"Version {tag} of '{dataset}' was rejected: {reason}")


@dataclass(frozen=True)
class Draft:
    """A version on its way, and the lease that lets only one at a time be on it."""

    version_id: int
    dataset_id: int
    place: VersionPlace
    format: Format
    mode: WriteMode
    lease: Held
    written: Written | None = None
    audited: Audited | None = None
    columns: tuple[Column, ...] = ()
    shape: str | None = None
    """What decides on the columns of the output, as one hash."""
    settled: bool = True
    """Whether the format has told all of what it wrote."""

    @property
    def rows(self) -> int | None:
        return self.audited.rows if self.audited else None

    @property
    def measures(self) -> dict[str, Any]:
        """How many files were written, and what Spark measured when they were checked."""
        files = self.written.files if self.written else None
        known = {} if files is None else {"filesWritten": files}
        checked = dict(self.audited.measures) if self.audited else {}
        return {**known, **({"check": checked} if checked else {})}


def reserve_draft(
    workspace: Workspace,
    dataset: str,
    business_date: date,
    *,
    partition: str | None,
    run_id: str,
    mode: WriteMode,
    lease: Held,
    shape: str | None = None,
    writer: WriterSession | None = None,
) -> Draft:
    """Take the next tag and say where the version is going to live, before it does."""
    form = format_of(workspace, dataset)
    if mode not in form.modes:
        raise WriteModeError(dataset, form.name, mode, form.modes)
    number = workspace.dataset_id(dataset)
    with workspace.catalog.writing() as session:
        columns = _same_shape(session, number, shape)
        version = reserve_version(
            session,
            number,
            business_date,
            partition_key=partition,
            own=True,
            produced_by_run_id=run_id,
        )
        place = place_of(workspace, dataset, version)
        spot = form.locate(workspace.site, place)
        details = {**spot.details, "mode": mode, "lease": lease.name, "fits": bool(columns)}
        details |= writer.details if writer else {}
        version.path = spot.path
        version.metadata_json = with_details(version, details)
        version_id = version.dataset_version_id
    faults.point("reserved")
    place = replace(place, path=spot.path, details=details)
    return Draft(version_id, number, place, form, mode, lease, columns=columns, shape=shape)


def write_draft(
    workspace: Workspace, spark: "SparkSession", draft: Draft, frame: "DataFrame"
) -> Draft:
    """Write a frame where no reader sees it, if it is what the dataset's schema says."""
    # What had the same shape before has the same columns, and need not be asked for them.
    fitted = frame if draft.columns else enforce_contract(workspace, draft, frame)
    form = draft.format
    put = form.put if isinstance(form, Settles) else form.write
    written = put(workspace.site, spark, fitted, draft.place, draft.mode)
    faults.point("written")
    details = {**draft.place.details, **written.details}
    if fitted is frame and details.get("fits"):
        details["shape"] = draft.shape
    place = replace(draft.place, details=details)
    columns = draft.columns or columns_of(draft.place, fitted)
    settled = not isinstance(form, Settles)
    return replace(draft, written=written, place=place, columns=columns, settled=settled)


def enforce_contract(workspace: Workspace, draft: Draft, frame: "DataFrame") -> "DataFrame":
    """Return the frame as its dataset declares it, or say how it differs."""
    from pyspark.sql import functions as F  # noqa: N812

    found = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    fit = fit_columns(found, draft.place.spec.columns)
    if fit.problems:
        raise ContractBrokenError(draft.place.dataset, fit.problems, _consumers(workspace, draft))
    if [name for name, _ in fit.columns] == [name for name, _ in found] and not fit.casts:
        return frame
    return frame.select(
        *(
            F.col(f"`{name}`").cast(kind).alias(name) if name in fit.casts else F.col(f"`{name}`")
            for name, kind in fit.columns
        )
    )


@contextmanager
def contract_kept(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Iterator[None]:
    """Reject a draft whose columns turn out not to be those that are declared."""
    try:
        yield
    except ContractBrokenError as error:
        found = broken_contract(error.problems)
        reject_draft(workspace, spark, draft, "; ".join(error.problems), found)
        raise


def audit_draft(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Check what was written. What does not pass is rejected and removed."""
    with ThreadPoolExecutor(1, thread_name_prefix="settle") as beside:
        # Both are questions to the server, and neither waits for the other's answer.
        settling = beside.submit(_settle, workspace, spark, draft)
        frame = draft.format.read_draft(workspace.site, spark, draft.place)
        audited = audit_version(workspace, spark, draft.place, frame, known=draft.columns)
    draft = replace(settling.result(), audited=audited)
    reason = audited.reason or _miscount(draft)
    if reason:
        reject_draft(workspace, spark, draft, reason)
        raise VersionRejectedError(draft.place.dataset, draft.place.tag, reason)
    return draft


def _miscount(draft: Draft) -> str:
    """Say if what is read back is not what was written: lost lines, rows of another partition."""
    wrote = draft.written.rows if draft.written else None
    counted = draft.mode in ("replace", "overwrite_partition")
    if wrote is None or not counted or wrote == draft.rows:
        return ""
    return f"{wrote:,} rows were written, and {draft.rows:,} are read back"


def _settle(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Ask for what is not known yet of what was written."""
    if draft.settled or not isinstance(draft.format, Settles):
        return draft
    written = draft.format.settle(workspace.site, spark, draft.place, draft.mode)
    place = replace(draft.place, details={**draft.place.details, **written.details})
    return replace(draft, written=written, place=place, settled=True)


def reject_draft(
    workspace: Workspace,
    spark: "SparkSession",
    draft: Draft,
    reason: str,
    found: Audited | None = None,
) -> None:
    """Say that a version is not good, and remove what was written of it.

    `found` is what is wrong with one that was not audited.
    """
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, draft.version_id)
        advance_version(session, version, REJECTED, reason=reason, row_count=draft.rows)
        audited = draft.audited or found
        if audited is not None:
            record_audit(session, draft.dataset_id, draft.version_id, audited)
    draft.format.discard(workspace.site, spark, draft.place)


def abandon_draft(workspace: Workspace, spark: "SparkSession", draft: Draft, reason: str) -> None:
    """Let go of a version whose run came to nothing.

    One that was announced is whole, and may be seen already: it is finished, now or later.
    """
    with workspace.catalog.reading() as session:
        if get_version_by_id(session, draft.version_id).state != WRITING:
            return
    draft.format.discard(workspace.site, spark, draft.place)
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, draft.version_id)
        advance_version(session, version, ABANDONED, reason=reason)


def publish_draft(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Let readers see a version that passed."""
    _announce(workspace, draft)
    faults.point("announced")
    draft.lease.check()
    finish_publish(workspace, spark, draft.version_id, draft.place, draft.format)
    return draft


def finish_publish(
    workspace: Workspace,
    spark: "SparkSession",
    version_id: int,
    place: VersionPlace,
    form: Format,
) -> None:
    """Do the last two steps, as often as it takes."""
    with workspace.catalog.reading() as session:
        version = get_version_by_id(session, version_id)
        later = has_later_ready(session, version)
    # Only a replaced table can go back; what was added to one must stay in it.
    newest = not later or place.details.get("mode") != "replace"
    details = form.publish(workspace.site, spark, place, newest=newest)
    faults.point("published")
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, version_id)
        if version.state != READY:
            metadata = with_details(version, details)
            advance_version(session, version, READY, metadata_json=metadata)
    faults.point("ready")


def _announce(workspace: Workspace, draft: Draft) -> None:
    assert draft.written is not None
    assert draft.audited is not None
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, draft.version_id)
        if version.state in (PUBLISHING, READY):
            # The commit came through before, and only its answer was lost.
            return
        advance_version(
            session,
            version,
            PUBLISHING,
            row_count=draft.audited.rows,
            size_bytes=draft.written.size,
            schema_hash=store_schemas(session, [draft.columns])[0] if draft.columns else None,
            metadata_json=with_details(version, draft.place.details),
        )
        record_audit(session, draft.dataset_id, draft.version_id, draft.audited)


def _same_shape(session: "Session", dataset_id: int, shape: str | None) -> tuple[Column, ...]:
    """Return the columns of the newest version, if what makes this one has the same shape."""
    before = None if shape is None else latest_ready(session, dataset_id)
    if before is None or details_of(before).get("shape") != shape:
        return ()
    return tuple(list_columns(session, before.schema_hash))


def _consumers(workspace: Workspace, draft: Draft) -> list[str]:
    with workspace.catalog.reading() as session:
        return [process.process_key for process in list_consumers(session, draft.dataset_id)]


def columns_of(place: VersionPlace, frame: "DataFrame") -> tuple[Column, ...]:
    """Return the columns of a frame as the catalog keeps them, null where the contract lets it."""
    declared: dict[str, Any] = {column.name: column for column in place.spec.columns}
    found: Sequence[Any] = frame.schema.fields
    return tuple(
        Column(
            one.name,
            one.dataType.simpleString(),
            declared[one.name].nullable if one.name in declared else one.nullable,
        )
        for one in found
    )
