"""Find, verify and check deliveries, and register new ones as versions."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from floe.catalog.schemas import Column, store_schemas
from floe.catalog.stable_names import OWN, details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import get_version_by_id, newest_of_date
from floe.catalog.versions import READY, REJECTED, WRITTEN, advance_version, reserve_version
from floe.execution.formats.contract import (
    Deliverable,
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    Extractable,
    StoredVersion,
)
from floe.execution.formats.delivery_errors import foreign_read, reject_problem
from floe.execution.versions.audits import Audited, audit_version, record_audit
from floe.execution.versions.drafts import columns_of
from floe.execution.versions.version_access import format_of, table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

MAX_WAIT = timedelta(hours=1)
MISSING = "MISSING"
NOTHING = "nothing was delivered"


@dataclass(frozen=True)
class Arrival:
    """The result of looking for a delivery."""

    dataset: str
    state: str
    tag: str | None = None
    reason: str = ""
    rows: int | None = None
    new: bool = False
    audited: Audited | None = None


def is_delivered(workspace: Workspace, dataset: str) -> bool:
    """Tell whether a dataset is delivered: floe can look for it, no process writes it."""
    processes = workspace.site.spec.processes.values()
    own = {output.dataset for process in processes for output in process.outputs.values()}
    return dataset not in own and can_receive(workspace, dataset)


def can_receive(workspace: Workspace, dataset: str) -> bool:
    """Tell whether floe can look for deliveries: files at a location, or a database."""
    form = format_of(workspace, dataset)
    located = workspace.dataset(dataset).location is not None
    return isinstance(form, Deliverable) and (located or isinstance(form, Extractable))


def receive(
    workspace: Workspace, spark: "SparkSession", dataset: str, business_date: date
) -> Arrival:
    """Register the delivery for a date; an unchanged one keeps its version."""
    with workspace.leases.hold(table_lease(workspace, dataset), wait=MAX_WAIT):
        return _Reception(workspace, spark, dataset, business_date).receive()


class _Reception:
    """Looks for the delivery of a dataset and a date, and registers it."""

    def __init__(
        self, workspace: Workspace, spark: "SparkSession", dataset: str, business_date: date
    ) -> None:
        self._workspace, self._spark = workspace, spark
        self._dataset, self._day = dataset, business_date
        self._dataset_id = workspace.dataset_id(dataset)
        self._format = format_of(workspace, dataset)

    @property
    def _delivered(self) -> Deliverable:
        return cast("Deliverable", self._format)

    def receive(self) -> Arrival:
        known = self._known()
        stored = self._stored(known)
        try:
            delivery = self._find(stored)
        except DeliveryIncompleteError as error:
            return self._missing(error.reason)
        except DeliveryRejectedError as error:
            delivery = self._unreadable(stored, error.reason)
        if delivery is None:
            return self._missing(f"{NOTHING} for {self._day}")
        arrival = self._register(known, delivery)
        if (
            isinstance(self._format, Extractable)
            and delivery.details.get("path")
            and not arrival.new
        ):
            self._discard(replace(stored, path=delivery.path, details=delivery.details))
        return arrival

    def _missing(self, reason: str) -> Arrival:
        return Arrival(self._dataset, MISSING, reason=reason)

    def _known(self) -> DatasetVersion | None:
        with self._workspace.catalog.reading() as session:
            return newest_of_date(session, self._dataset_id, self._day)

    def _stored(self, known: DatasetVersion | None) -> StoredVersion:
        spec = self._workspace.dataset(self._dataset)
        details = {} if known is None else details_of(known)
        tag = known.version_tag if known else f"{self._day}.0"
        return StoredVersion(self._dataset, spec, tag, self._day, details=details)

    def _find(self, stored: StoredVersion) -> Delivery | None:
        """Find the delivery. A database table must be copied to see its content."""
        if isinstance(self._format, Extractable):
            return self._extract(stored)
        with foreign_read(self._workspace.site, self._dataset):
            return self._delivered.find(self._workspace.site, stored)

    def _extract(self, stored: StoredVersion) -> Delivery:
        assert isinstance(self._format, Extractable)
        site = self._workspace.site
        draft = replace(stored, tag=f"{self._day}.{uuid4().hex[:12]}", details={})
        try:
            with foreign_read(site, self._dataset, database=_database(stored)):
                written = self._format.extract(site, self._spark, draft)
        except (DeliveryIncompleteError, DeliveryRejectedError):
            self._discard(replace(draft, details={"extract": True}))
            raise
        path, fingerprint = written.details["path"], written.details["fingerprint"]
        return Delivery(str(path), str(fingerprint), written.size, written.rows, written.details)

    def _unreadable(self, stored: StoredVersion, reason: str) -> Delivery:
        """Return a placeholder for a delivery that cannot be listed, keyed by the reason."""
        fingerprint = hashlib.sha256(f"unreadable\0{reason}".encode()).hexdigest()
        # floe must not remove any of its files.
        kind = "extract" if isinstance(self._format, Extractable) else "delivered"
        path = stored.spec.location or self._dataset
        return Delivery(path, fingerprint, details={kind: True}, problem=reason)

    def _discard(self, copy: StoredVersion) -> None:
        self._format.discard(self._workspace.site, self._spark, copy)

    def _register(self, known: DatasetVersion | None, delivery: Delivery) -> Arrival:
        if known is not None and is_already_received(
            self._workspace, self._dataset, known, delivery
        ):
            return self._unchanged(known)
        stored = self._stored(known)
        stored = replace(stored, path=delivery.path, details=delivery.details)
        try:
            verified = self._verify(stored, delivery)
        except DeliveryIncompleteError as error:
            return self._missing(error.reason)
        except DeliveryRejectedError as error:
            version = self._version(known, delivery)
            stored = replace(stored, tag=version.version_tag)
            return record_outcome(self._workspace, version, stored, REJECTED, reason=error.reason)
        version = self._version(known, verified)
        stored = replace(
            stored, tag=version.version_tag, path=verified.path, details=verified.details
        )
        return check_delivery(self._workspace, self._spark, version, stored)

    def _verify(self, stored: StoredVersion, delivery: Delivery) -> Delivery:
        with foreign_read(self._workspace.site, self._dataset):
            reject_problem(self._dataset, delivery)
            return self._delivered.verify(self._workspace.site, self._spark, stored, delivery)

    def _version(self, known: DatasetVersion | None, delivery: Delivery) -> DatasetVersion:
        """Return the version that was announced for this delivery, or a new one."""
        with self._workspace.catalog.writing() as session:
            if known is not None and _was_announced_for(known, delivery):
                row = get_version_by_id(session, known.dataset_version_id)
                row.checksum, row.size_bytes = delivery.fingerprint, delivery.size
                return row
            return reserve_version(
                session,
                self._dataset_id,
                self._day,
                state=WRITTEN,
                path=delivery.path,
                size_bytes=delivery.size,
                checksum=delivery.fingerprint,
                metadata_json={OWN: dict(delivery.details)},
            )

    def _unchanged(self, known: DatasetVersion) -> Arrival:
        reason = str((known.metadata_json or {}).get("reason", ""))
        return Arrival(
            self._dataset, known.state, known.version_tag, reason, known.row_count, new=False
        )


def is_already_received(
    workspace: Workspace, dataset: str, known: DatasetVersion, delivery: Delivery
) -> bool:
    """Tell whether a version has this content, and if rejected, under these rules."""
    if known.checksum != delivery.fingerprint or known.state == WRITTEN:
        return False
    rules = (known.metadata_json or {}).get("rules")
    return known.state != REJECTED or rules == _rules(workspace, dataset)


def _database(stored: StoredVersion) -> str:
    """Return the name of the database connection of a dataset."""
    return str(getattr(stored.spec.format_options, "connection", stored.spec.format))


def _was_announced_for(known: DatasetVersion, delivery: Delivery) -> bool:
    """Tell whether a version was announced for this delivery before floe received it."""
    if known.state == WRITTEN:
        return known.checksum == delivery.fingerprint or _is_unseen(known)
    return known.state == READY and _is_unseen(known)


def _is_unseen(known: DatasetVersion) -> bool:
    """Tell whether floe never read the version: only producers prefix checksums."""
    return known.checksum is None or ":" in known.checksum


def _rules(workspace: Workspace, dataset: str) -> str:
    """Return a hash of everything that a delivery is checked against."""
    spec = workspace.dataset(dataset)
    wanted = {"columns", "checks", "manifest", "options", "format"}
    return hashlib.sha256(spec.model_dump_json(include=wanted).encode()).hexdigest()


def check_delivery(
    workspace: Workspace, spark: "SparkSession", version: DatasetVersion, stored: StoredVersion
) -> Arrival:
    """Check a version from another system, and make it READY or REJECTED.

    A version that cannot be read at present keeps its state and is checked again later.
    """
    try:
        with foreign_read(workspace.site, stored.dataset):
            inspection = _inspect(workspace, spark, stored)
            reason = inspection.audited.reason or _change_since(workspace, version, stored)
    except DeliveryIncompleteError as error:
        return Arrival(stored.dataset, MISSING, version.version_tag, error.reason)
    except DeliveryRejectedError as error:
        return record_outcome(workspace, version, stored, REJECTED, reason=error.reason)
    state = REJECTED if reason else READY
    return record_outcome(workspace, version, stored, state, reason=reason, inspection=inspection)


def _inspect(workspace: Workspace, spark: "SparkSession", stored: StoredVersion) -> "Inspection":
    """Read a version: its bad records, check results and columns."""
    form = format_of(workspace, stored.dataset)
    notes: dict[str, Any] = {}
    if isinstance(form, Deliverable):
        bad = form.bad_records(workspace.site, spark, stored)
        if bad.count:
            notes["bad_records"] = {"count": bad.count, "samples": list(bad.samples)}
    frame = form.read(workspace.site, spark, stored)
    audited = audit_version(workspace, spark, stored, frame)
    return Inspection(audited, columns_of(stored, frame), notes)


def _change_since(workspace: Workspace, version: DatasetVersion, stored: StoredVersion) -> str:
    """Name the files that changed while they were being read, or return ""."""
    form = format_of(workspace, stored.dataset)
    if not stored.details.get("delivered") or not isinstance(form, Deliverable):
        return ""
    when = "while it was being read; the next run receives it again"
    try:
        again = form.find(workspace.site, replace(stored, details={}))
    except (DeliveryIncompleteError, FileNotFoundError):
        again = None
    if again is None:
        return f"the delivery was changed or removed {when}"
    if again.fingerprint == version.checksum:
        return ""
    before = {file["name"]: file for file in stored.details.get("files", ())}
    after = {file["name"]: file for file in again.details.get("files", ())}
    names = [
        name
        for name in sorted({**before, **after})
        if _checksum(before, name) != _checksum(after, name)
    ]
    return f"{', '.join(names[:3]) or 'the manifest'} was changed {when}"


def _checksum(files: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    return files.get(name, {}).get("sha256")


@dataclass(frozen=True)
class Inspection:
    """The results of reading a version."""

    audited: Audited
    columns: Sequence[Column]
    notes: Mapping[str, Any]


def record_outcome(
    workspace: Workspace,
    version: DatasetVersion,
    stored: StoredVersion,
    state: str,
    *,
    reason: str = "",
    inspection: Inspection | None = None,
) -> Arrival:
    """Record the new state of a version from another system."""
    with workspace.catalog.writing() as session:
        row = get_version_by_id(session, version.dataset_version_id)
        metadata = {**(row.metadata_json or {}), OWN: dict(stored.details)}
        if reason:
            # Changed rules are a reason to check a rejected delivery again.
            metadata |= {"reason": reason, "rules": _rules(workspace, stored.dataset)}
        row.path = stored.path
        if inspection is not None:
            metadata |= inspection.notes
            row.row_count = inspection.audited.rows
            row.schema_hash = store_schemas(session, [inspection.columns])[0]
            record_audit(session, row.dataset_id, row.dataset_version_id, inspection.audited)
        if row.state == state:
            # Its producer announced it as READY, and the checks agree.
            row.metadata_json = metadata
        else:
            advance_version(session, row, state, reason=reason or None, metadata_json=metadata)
        rows = row.row_count
    audited = None if inspection is None else inspection.audited
    return Arrival(stored.dataset, state, version.version_tag, reason, rows, True, audited)
