"""Write, audit and publish a version, in durable steps that can be repaired.

The catalog reserves the tag and records the version's path before anything is written. It then
records PUBLISHING with the check results, the lake makes the version visible, and the catalog sets
READY. After a crash in between, the catalog has what is needed to finish or remove the version.
"""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Any

from floe.catalog.edges import list_consumers
from floe.catalog.schemas import Column, list_columns, store_schemas
from floe.catalog.stable_names import details_of, with_details
from floe.catalog.version_queries import get_version_by_id, has_later_ready, latest_ready
from floe.catalog.versions import (
    ABANDONED,
    PUBLISHING,
    READY,
    REJECTED,
    WRITING,
    advance_version,
    reserve_version,
)
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.cancellation import Cancellation
from floe.execution.failures import reason_of
from floe.execution.formats.contract import (
    Adoptable,
    Format,
    SplitWriter,
    StoredVersion,
    WriteModeError,
    Written,
)
from floe.execution.leases import HeldLease
from floe.execution.versions.audits import (
    Audited,
    audit_version,
    broken_contract,
    record_audit,
)
from floe.execution.versions.schema_fit import ContractBrokenError, fit_columns
from floe.execution.versions.version_access import WriterSession, format_of, stored_version
from floe.execution.workspace import Workspace
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session


Say = Callable[[str], None]


class VersionRejectedError(FloeError):
    """A version failed its checks."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        self.dataset, self.tag, self.reason = dataset, tag, reason
        super().__init__(f"Version {tag} of '{dataset}' was rejected: {reason}")


@dataclass(frozen=True)
class Draft:
    """A version that is being written, and the lease on its table."""

    version_id: int
    dataset_id: int
    stored: StoredVersion
    format: Format
    mode: WriteMode
    lease: HeldLease
    written: Written | None = None
    audited: Audited | None = None
    columns: tuple[Column, ...] = ()
    shape: str | None = None
    """A hash of everything that determines the columns (see execution.outputs)."""
    settled: bool = True
    """Whether the format has reported everything it wrote."""

    @property
    def rows(self) -> int | None:
        return self.audited.rows if self.audited else None

    @property
    def measures(self) -> dict[str, Any]:
        """The number of files written, and Spark's measures of the audit."""
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
    lease: HeldLease,
    shape: str | None = None,
    writer: WriterSession | None = None,
) -> Draft:
    """Reserve the next tag and record where the version will be stored."""
    form = format_of(workspace, dataset)
    if mode not in form.modes:
        raise WriteModeError(dataset, form.name, mode, form.modes)
    dataset_id = workspace.dataset_id(dataset)
    with workspace.catalog.writing() as session:
        columns = _same_shape(session, dataset_id, shape)
        version = reserve_version(
            session,
            dataset_id,
            business_date,
            partition_key=partition,
            own=True,
            produced_by_run_id=run_id,
        )
        stored = stored_version(workspace, dataset, version)
        location = form.locate(workspace.site, stored)
        details = {**location.details, "mode": mode, "lease": lease.name, "fits": bool(columns)}
        details |= writer.details if writer else {}
        version.path = location.path
        version.metadata_json = with_details(version, details)
        version_id = version.dataset_version_id
    faults.point("reserved")
    stored = replace(stored, path=location.path, details=details)
    return Draft(version_id, dataset_id, stored, form, mode, lease, columns=columns, shape=shape)


def write_draft(
    workspace: Workspace, spark: "SparkSession", draft: Draft, frame: "DataFrame"
) -> Draft:
    """Write a frame where no reader sees it, if it matches the dataset's schema."""
    # Same shape, same columns: skip the schema check.
    fitted = frame if draft.columns else enforce_contract(workspace, draft, frame)
    form = draft.format
    put = form.write_data if isinstance(form, SplitWriter) else form.write
    written = put(workspace.site, spark, fitted, draft.stored, draft.mode)
    faults.point("written")
    details = {**draft.stored.details, **written.details}
    if fitted is frame and details.get("fits"):
        details["shape"] = draft.shape
    stored = replace(draft.stored, details=details)
    columns = draft.columns or columns_of(draft.stored, fitted)
    settled = not isinstance(form, SplitWriter)
    return replace(draft, written=written, stored=stored, columns=columns, settled=settled)


def enforce_contract(workspace: Workspace, draft: Draft, frame: "DataFrame") -> "DataFrame":
    """Cast and reorder a frame to the declared schema, or raise with the differences."""
    from pyspark.sql import functions as F  # noqa: N812

    actual = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    fit = fit_columns(actual, draft.stored.spec.columns)
    if fit.problems:
        raise ContractBrokenError(draft.stored.dataset, fit.problems, _consumers(workspace, draft))
    if [name for name, _ in fit.columns] == [name for name, _ in actual] and not fit.casts:
        return frame
    return frame.select(
        *(
            F.col(f"`{name}`").cast(kind).alias(name) if name in fit.casts else F.col(f"`{name}`")
            for name, kind in fit.columns
        )
    )


@contextmanager
def reject_broken_contract(
    workspace: Workspace, spark: "SparkSession", draft: Draft
) -> Iterator[None]:
    """Reject the draft if its columns do not match the declared schema."""
    try:
        yield
    except ContractBrokenError as error:
        broken = broken_contract(error.problems)
        reject_draft(workspace, spark, draft, "; ".join(error.problems), broken)
        raise


def audit_draft(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Run the checks on a draft; reject and remove it if they fail."""
    with ThreadPoolExecutor(1, thread_name_prefix="settle") as executor:
        # Both are queries to the Spark server, and independent of each other.
        settling = executor.submit(_settle, workspace, spark, draft)
        frame = draft.format.read_draft(workspace.site, spark, draft.stored)
        audited = audit_version(workspace, spark, draft.stored, frame, known=draft.columns)
    draft = replace(settling.result(), audited=audited)
    reason = audited.reason or _row_count_error(draft)
    if reason:
        reject_draft(workspace, spark, draft, reason)
        raise VersionRejectedError(draft.stored.dataset, draft.stored.tag, reason)
    return draft


def _row_count_error(draft: Draft) -> str:
    """Return an error if the row count read back differs from the rows written."""
    wrote = draft.written.rows if draft.written else None
    counted = draft.mode in ("replace", "overwrite_partition")
    if wrote is None or not counted or wrote == draft.rows:
        return ""
    return f"{wrote:,} rows were written, but {draft.rows:,} were read back"


def _settle(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Complete the facts about the written data, if the format delayed them."""
    if draft.settled or not isinstance(draft.format, SplitWriter):
        return draft
    written = draft.format.measure_write(workspace.site, spark, draft.stored, draft.mode)
    stored = replace(draft.stored, details={**draft.stored.details, **written.details})
    return replace(draft, written=written, stored=stored, settled=True)


def reject_draft(
    workspace: Workspace,
    spark: "SparkSession",
    draft: Draft,
    reason: str,
    broken: Audited | None = None,
) -> None:
    """Mark a version REJECTED, and remove its data.

    `broken` holds the verdict for a version that was not audited.
    """
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, draft.version_id)
        advance_version(session, version, REJECTED, reason=reason, row_count=draft.rows)
        audited = draft.audited or broken
        if audited is not None:
            record_audit(session, draft.dataset_id, draft.version_id, audited)
    draft.format.discard(workspace.site, spark, draft.stored)


def abandon_draft(workspace: Workspace, spark: "SparkSession", draft: Draft, reason: str) -> None:
    """Mark a version ABANDONED, and remove its data.

    A version in PUBLISHING is complete and may be visible already: it is finished later instead.
    """
    with workspace.catalog.reading() as session:
        if get_version_by_id(session, draft.version_id).state != WRITING:
            return
    draft.format.discard(workspace.site, spark, draft.stored)
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, draft.version_id)
        advance_version(session, version, ABANDONED, reason=reason)


def publish_draft(workspace: Workspace, spark: "SparkSession", draft: Draft) -> Draft:
    """Make a version that passed its checks visible to readers."""
    _announce(workspace, draft)
    faults.point("announced")
    draft.lease.check()
    finish_publish(workspace, spark, draft.version_id, draft.stored, draft.format)
    return draft


def finish_publish(
    workspace: Workspace,
    spark: "SparkSession",
    version_id: int,
    stored: StoredVersion,
    form: Format,
) -> None:
    """Make a version visible and READY. Safe to repeat."""
    with workspace.catalog.reading() as session:
        version = get_version_by_id(session, version_id)
        later = has_later_ready(session, version)
    # In mode `replace` a newer date stays visible. Otherwise the table must keep the added rows.
    newest = not later or stored.details.get("mode") != "replace"
    details = form.publish(workspace.site, spark, stored, newest=newest)
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
            # An earlier try was committed, but its confirmation was lost.
            return
        advance_version(
            session,
            version,
            PUBLISHING,
            row_count=draft.audited.rows,
            size_bytes=draft.written.size,
            schema_hash=store_schemas(session, [draft.columns])[0] if draft.columns else None,
            metadata_json=with_details(version, draft.stored.details),
        )
        record_audit(session, draft.dataset_id, draft.version_id, draft.audited)


def _same_shape(session: "Session", dataset_id: int, shape: str | None) -> tuple[Column, ...]:
    """Return the columns of the newest version if it has the same shape, else none."""
    before = None if shape is None else latest_ready(session, dataset_id)
    if before is None or details_of(before).get("shape") != shape:
        return ()
    return tuple(list_columns(session, before.schema_hash))


def _consumers(workspace: Workspace, draft: Draft) -> list[str]:
    with workspace.catalog.reading() as session:
        return [process.process_key for process in list_consumers(session, draft.dataset_id)]


def columns_of(stored: StoredVersion, frame: "DataFrame") -> tuple[Column, ...]:
    """Return a frame's columns for the catalog, nullable as the schema declares."""
    declared: dict[str, Any] = {column.name: column for column in stored.spec.columns}
    fields: Sequence[Any] = frame.schema.fields
    return tuple(
        Column(
            field.name,
            field.dataType.simpleString(),
            declared[field.name].nullable if field.name in declared else field.nullable,
        )
        for field in fields
    )


def adopt_draft(
    workspace: Workspace,
    spark: "SparkSession",
    draft: Draft,
    rows: int | None,
    details: Mapping[str, Any],
) -> Draft:
    """Take over data that an engine wrote itself, and check it against the schema."""
    stored = replace(draft.stored, details={**draft.stored.details, **details})
    written = Written(rows, None, stored.details)
    if isinstance(draft.format, Adoptable):
        written = draft.format.adopt(workspace.site, spark, stored)
    stored = replace(stored, details={**stored.details, **written.details})
    draft = replace(draft, stored=stored, written=written)
    frame = draft.format.read_draft(workspace.site, spark, stored)
    enforce_contract(workspace, draft, frame)
    return replace(draft, columns=columns_of(stored, frame))


@contextmanager
def abandon_on_failure(
    workspace: Workspace,
    spark: "SparkSession",
    drafts: Mapping[str, Draft],
    cancellation: Cancellation,
    say: Say,
) -> Iterator[None]:
    """Abandon the drafts if the work fails; log drafts that cannot be cleaned up."""
    try:
        yield
    except BaseException as error:
        reason = f"its run failed: {reason_of(error)}"
        for draft in drafts.values():
            _abandon(workspace, spark, draft, reason, say)
        if cancellation.error is not None and error is not cancellation.error:
            # Raise the reason for the cancellation, not the error that it caused.
            raise cancellation.error from error
        raise


def _abandon(
    workspace: Workspace, spark: "SparkSession", draft: Draft, reason: str, say: Say
) -> None:
    try:
        abandon_draft(workspace, spark, draft, reason)
    except Exception as error:  # noqa: BLE001 - the original failure is the one to raise
        version = f"{draft.stored.dataset} {draft.stored.tag}"
        say(f"{version} could not be removed; the next run repairs it: {reason_of(error)}")
