"""Deliveries of others: found, verified, checked, and registered as versions when they are new."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from floe.catalog.schemas import Column, store_schemas
from floe.catalog.shown import OWN, details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import (
    READY,
    REJECTED,
    WRITTEN,
    advance_version,
    get_version_by_id,
    newest_of_date,
    reserve_version,
)
from floe.execution.formats.contract import (
    Delivered,
    Delivery,
    DeliveryIncompleteError,
    DeliveryRejectedError,
    Extracts,
    VersionPlace,
)
from floe.execution.formats.foreign import foreign_read, refuse_problem
from floe.execution.versions.audits import Audited, audit_version, record_audit
from floe.execution.versions.drafts import columns_of
from floe.execution.versions.places import format_of
from floe.execution.versions.tables import table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

LONGEST_WAIT = timedelta(hours=1)
MISSING = "MISSING"
NOTHING = "nothing was delivered"


@dataclass(frozen=True)
class Arrival:
    """What was found of a dataset that others deliver."""

    dataset: str
    state: str
    tag: str | None = None
    reason: str = ""
    rows: int | None = None
    new: bool = False
    audited: Audited | None = None


def is_delivered(workspace: Workspace, dataset: str) -> bool:
    """Tell whether others deliver a dataset: no process writes it, and it can be looked for."""
    processes = workspace.site.spec.processes.values()
    own = {output.dataset for process in processes for output in process.outputs.values()}
    return dataset not in own and can_receive(workspace, dataset)


def can_receive(workspace: Workspace, dataset: str) -> bool:
    """Tell whether floe can look for deliveries: files at a location, or a database source."""
    form = format_of(workspace, dataset)
    located = workspace.dataset(dataset).location is not None
    return isinstance(form, Delivered) and (located or isinstance(form, Extracts))


def receive(
    workspace: Workspace, spark: "SparkSession", dataset: str, business_date: date
) -> Arrival:
    """Register what was delivered for a date, if it is new. An unchanged one keeps its version."""
    with workspace.leases.hold(table_lease(workspace, dataset), wait=LONGEST_WAIT):
        return _Reception(workspace, spark, dataset, business_date).receive()


class _Reception:
    """One look at what was delivered for a dataset and a date."""

    def __init__(
        self, workspace: Workspace, spark: "SparkSession", dataset: str, business_date: date
    ) -> None:
        self._workspace, self._spark = workspace, spark
        self._dataset, self._day = dataset, business_date
        self._number = workspace.dataset_id(dataset)
        self._format = format_of(workspace, dataset)

    @property
    def _delivered(self) -> Delivered:
        return cast("Delivered", self._format)

    def receive(self) -> Arrival:
        known = self._known()
        place = self._place(known)
        try:
            delivery = self._look(place)
        except DeliveryIncompleteError as error:
            return self._missing(error.reason)
        except DeliveryRejectedError as error:
            delivery = self._unreadable(place, error.reason)
        if delivery is None:
            return self._missing(f"{NOTHING} for {self._day}")
        arrival = self._register(known, delivery)
        if isinstance(self._format, Extracts) and delivery.details.get("path") and not arrival.new:
            self._discard(replace(place, path=delivery.path, details=delivery.details))
        return arrival

    def _missing(self, reason: str) -> Arrival:
        return Arrival(self._dataset, MISSING, reason=reason)

    def _known(self) -> DatasetVersion | None:
        with self._workspace.catalog.reading() as session:
            return newest_of_date(session, self._number, self._day)

    def _place(self, known: DatasetVersion | None) -> VersionPlace:
        spec = self._workspace.dataset(self._dataset)
        details = {} if known is None else details_of(known)
        tag = known.version_tag if known else f"{self._day}.0"
        return VersionPlace(self._dataset, spec, tag, self._day, details=details)

    def _look(self, place: VersionPlace) -> Delivery | None:
        """Find what was delivered. A table has to be copied to know what it holds."""
        if isinstance(self._format, Extracts):
            return self._extract(place)
        with foreign_read(self._workspace.site, self._dataset):
            return self._delivered.find(self._workspace.site, place)

    def _extract(self, place: VersionPlace) -> Delivery:
        assert isinstance(self._format, Extracts)
        site = self._workspace.site
        draft = replace(place, tag=f"{self._day}.{uuid4().hex[:12]}", details={})
        try:
            with foreign_read(site, self._dataset, database=_database(place)):
                written = self._format.extract(site, self._spark, draft)
        except (DeliveryIncompleteError, DeliveryRejectedError):
            self._discard(replace(draft, details={"extract": True}))
            raise
        path, fingerprint = written.details["path"], written.details["fingerprint"]
        return Delivery(str(path), str(fingerprint), written.size, written.rows, written.details)

    def _unreadable(self, place: VersionPlace, reason: str) -> Delivery:
        """Stand for a delivery that cannot even be listed: it is known by what is wrong with it."""
        fingerprint = hashlib.sha256(f"unreadable\0{reason}".encode()).hexdigest()
        # Nothing of it is floe's to remove.
        kind = "extract" if isinstance(self._format, Extracts) else "delivered"
        path = place.spec.location or self._dataset
        return Delivery(path, fingerprint, details={kind: True}, problem=reason)

    def _discard(self, copy: VersionPlace) -> None:
        self._format.discard(self._workspace.site, self._spark, copy)

    def _register(self, known: DatasetVersion | None, delivery: Delivery) -> Arrival:
        if known is not None and is_settled(self._workspace, self._dataset, known, delivery):
            return self._unchanged(known)
        place = self._place(known)
        place = replace(place, path=delivery.path, details=delivery.details)
        try:
            verified = self._verify(place, delivery)
        except DeliveryIncompleteError as error:
            return self._missing(error.reason)
        except DeliveryRejectedError as error:
            version = self._version(known, delivery)
            place = replace(place, tag=version.version_tag)
            return settle(self._workspace, version, place, REJECTED, reason=error.reason)
        version = self._version(known, verified)
        place = replace(
            place, tag=version.version_tag, path=verified.path, details=verified.details
        )
        return check_delivery(self._workspace, self._spark, version, place)

    def _verify(self, place: VersionPlace, delivery: Delivery) -> Delivery:
        with foreign_read(self._workspace.site, self._dataset):
            refuse_problem(self._dataset, delivery)
            return self._delivered.verify(self._workspace.site, self._spark, place, delivery)

    def _version(self, known: DatasetVersion | None, delivery: Delivery) -> DatasetVersion:
        """Return the version that waits for this delivery, or a new one."""
        with self._workspace.catalog.writing() as session:
            if known is not None and _is_about(known, delivery):
                row = get_version_by_id(session, known.dataset_version_id)
                row.checksum, row.size_bytes = delivery.fingerprint, delivery.size
                return row
            return reserve_version(
                session,
                self._number,
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


def is_settled(
    workspace: Workspace, dataset: str, known: DatasetVersion, delivery: Delivery
) -> bool:
    """Tell whether a version stands for this delivery; if it was rejected, by today's rules."""
    if known.checksum != delivery.fingerprint or known.state == WRITTEN:
        return False
    rules = (known.metadata_json or {}).get("rules")
    return known.state != REJECTED or rules == _rules(workspace, dataset)


def _database(place: VersionPlace) -> str:
    """Return the name of the connection that a dataset is copied from."""
    return str(getattr(place.spec.format_options, "connection", place.spec.format))


def _is_about(known: DatasetVersion, delivery: Delivery) -> bool:
    """Tell whether a version was announced for a delivery before anybody had looked at it."""
    if known.state == WRITTEN:
        return known.checksum in (None, delivery.fingerprint)
    return known.state == READY and known.checksum is None


def _rules(workspace: Workspace, dataset: str) -> str:
    """Return one hash of all that a delivery is held against."""
    spec = workspace.dataset(dataset)
    wanted = {"columns", "checks", "manifest", "options", "format"}
    return hashlib.sha256(spec.model_dump_json(include=wanted).encode()).hexdigest()


def check_delivery(
    workspace: Workspace, spark: "SparkSession", version: DatasetVersion, place: VersionPlace
) -> Arrival:
    """Check a version that others wrote, and say whether it is READY or REJECTED.

    One that cannot be read for now keeps its state and is looked at again.
    """
    try:
        with foreign_read(workspace.site, place.dataset):
            seen = _see(workspace, spark, place)
            reason = seen.audited.reason or _change_since(workspace, version, place)
    except DeliveryIncompleteError as error:
        return Arrival(place.dataset, MISSING, version.version_tag, error.reason)
    except DeliveryRejectedError as error:
        return settle(workspace, version, place, REJECTED, reason=error.reason)
    state = REJECTED if reason else READY
    return settle(workspace, version, place, state, reason=reason, seen=seen)


def _see(workspace: Workspace, spark: "SparkSession", place: VersionPlace) -> "Seen":
    """Read a version: its bad records, its rows against the checks, its columns."""
    form = format_of(workspace, place.dataset)
    notes: dict[str, Any] = {}
    if isinstance(form, Delivered):
        bad = form.bad_records(workspace.site, spark, place)
        if bad.count:
            notes["bad_records"] = {"count": bad.count, "samples": list(bad.samples)}
    frame = form.read(workspace.site, spark, place)
    audited = audit_version(workspace, spark, place, frame)
    return Seen(audited, columns_of(place, frame), notes)


def _change_since(workspace: Workspace, version: DatasetVersion, place: VersionPlace) -> str:
    """Say which file changed between the first look and now; it may have been read half-way."""
    form = format_of(workspace, place.dataset)
    if not place.details.get("delivered") or not isinstance(form, Delivered):
        return ""
    todo = "while it was read; it is received again with the next run"
    try:
        again = form.find(workspace.site, replace(place, details={}))
    except (DeliveryIncompleteError, FileNotFoundError):
        again = None
    if again is None:
        return f"the delivery was changed or removed {todo}"
    if again.fingerprint == version.checksum:
        return ""
    before = {file["name"]: file for file in place.details.get("files", ())}
    after = {file["name"]: file for file in again.details.get("files", ())}
    names = [
        name for name in sorted({**before, **after}) if _sum(before, name) != _sum(after, name)
    ]
    return f"{', '.join(names[:3]) or 'the manifest'} was changed {todo}"


def _sum(files: Mapping[str, Mapping[str, Any]], name: str) -> Any:
    return files.get(name, {}).get("sha256")


@dataclass(frozen=True)
class Seen:
    """What was seen of a version when it was read."""

    audited: Audited
    columns: Sequence[Column]
    notes: Mapping[str, Any]


def settle(
    workspace: Workspace,
    version: DatasetVersion,
    place: VersionPlace,
    state: str,
    *,
    reason: str = "",
    seen: Seen | None = None,
) -> Arrival:
    """Write down what became of a version that others wrote."""
    with workspace.catalog.writing() as session:
        row = get_version_by_id(session, version.dataset_version_id)
        metadata = {**(row.metadata_json or {}), OWN: dict(place.details)}
        if reason:
            # Corrected rules are a reason to look again at what was rejected.
            metadata |= {"reason": reason, "rules": _rules(workspace, place.dataset)}
        row.path = place.path
        if seen is not None:
            metadata |= seen.notes
            row.row_count = seen.audited.rows
            row.schema_hash = store_schemas(session, [seen.columns])[0]
            record_audit(session, row.dataset_id, row.dataset_version_id, seen.audited)
        if row.state == state:
            # Its producer had said READY, and was right.
            row.metadata_json = metadata
        else:
            advance_version(session, row, state, reason=reason or None, metadata_json=metadata)
        rows = row.row_count
    audited = None if seen is None else seen.audited
    return Arrival(place.dataset, state, version.version_tag, reason, rows, True, audited)
