"""Check a version on demand. Only a WRITTEN version changes its state."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import (
    describe_state,
    get_version_of,
    latest_ready,
    list_unvalidated,
)
from floe.catalog.versions import REJECTED, WRITTEN
from floe.execution.formats.delivery_errors import version_read
from floe.execution.versions.arrivals import can_receive, check_delivery, receive
from floe.execution.versions.audits import Audited, audit_version, record_audit, recorded_audit
from floe.execution.versions.previews import NoReadyVersionError
from floe.execution.versions.version_access import format_of, stored_version
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True)
class Checked:
    """The check results of a version, and its state afterwards."""

    dataset: str
    tag: str
    state: str
    audited: Audited | None
    reason: str = ""
    recalled: bool = False
    """Whether these are recorded results, not measured now."""

    @property
    def ok(self) -> bool:
        return self.state not in ("REJECTED", "MISSING") and not (
            self.audited and self.audited.failures
        )


def check_version(
    workspace: Workspace, spark: "SparkSession", dataset: str, tag: str | None
) -> Checked:
    """Check a version, by default the newest READY one."""
    dataset_id = workspace.dataset_id(dataset)
    with workspace.catalog.reading() as session:
        if tag is None:
            version = latest_ready(session, dataset_id)
        else:
            version = get_version_of(session, dataset_id, tag)
    if version is None:
        raise NoReadyVersionError(dataset)
    return _check(workspace, spark, dataset, version)


def check_waiting(workspace: Workspace, spark: "SparkSession") -> list[Checked]:
    """Check every WRITTEN version of the project, which makes it READY or REJECTED."""
    with workspace.catalog.reading() as session:
        waiting = [
            (get_dataset(session, version.dataset_id).name, version)
            for version in list_unvalidated(session, workspace.site.spec.name)
        ]
    return [_check(workspace, spark, dataset, version) for dataset, version in waiting]


def _check(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> Checked:
    if version.state == WRITTEN:
        return _decide(workspace, spark, dataset, version)
    if version.state == REJECTED:
        return _recorded(workspace, dataset, version)
    location = stored_version(workspace, dataset, version)
    with version_read(workspace.site, dataset, version.version_tag):
        frame = format_of(workspace, dataset).read(workspace.site, spark, location)
        audited = audit_version(workspace, spark, location, frame)
    with workspace.catalog.writing() as session:
        record_audit(session, version.dataset_id, version.dataset_version_id, audited)
    return Checked(dataset, version.version_tag, version.state, audited, audited.reason)


def _recorded(workspace: Workspace, dataset: str, version: DatasetVersion) -> Checked:
    """Return the recorded results of a rejected version, because its data is gone."""
    with workspace.catalog.reading() as session:
        audited = recorded_audit(session, version)
        event = describe_state(session, version)
    reason = (event and event.reason) or ""
    return Checked(dataset, version.version_tag, version.state, audited, reason, recalled=True)


def _decide(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> Checked:
    """Receive an announced delivery; read any other version at its announced path."""
    location = stored_version(workspace, dataset, version)
    if not location.details and can_receive(workspace, dataset):
        assert version.business_date is not None
        arrival = receive(workspace, spark, dataset, version.business_date)
    else:
        arrival = check_delivery(workspace, spark, version, location)
    tag = arrival.tag or version.version_tag
    return Checked(dataset, tag, arrival.state, arrival.audited, arrival.reason)
