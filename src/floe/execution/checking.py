"""Check any version on demand: one that waits is decided, any other is only looked at."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.retention import describe_state
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import REJECTED, WRITTEN, get_version_of, latest_ready, list_waiting
from floe.errors import FloeError
from floe.execution.formats.foreign import version_read
from floe.execution.versions.arrivals import can_receive, check_delivery, receive
from floe.execution.versions.audits import Audited, audit_version, record_audit, recorded_audit
from floe.execution.versions.places import format_of, place_of
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


class NoVersionError(FloeError):
    """There is no version to check."""

    def __init__(self, dataset: str) -> None:
        super().__init__(f"'{dataset}' has no READY version. See: floe versions {dataset}")


@dataclass(frozen=True)
class Checked:
    """What the checks of a dataset say of a version, and what became of it."""

    dataset: str
    tag: str
    state: str
    audited: Audited | None
    reason: str = ""
    recalled: bool = False
    """Whether it is what was found before, and nothing was measured now."""

    @property
    def ok(self) -> bool:
        return self.state not in ("REJECTED", "MISSING") and not (
            self.audited and self.audited.failures
        )


def check_version(
    workspace: Workspace, spark: "SparkSession", dataset: str, tag: str | None
) -> Checked:
    """Check a version, by default the newest that is READY."""
    number = workspace.dataset_id(dataset)
    with workspace.catalog.reading() as session:
        if tag is None:
            version = latest_ready(session, number)
        else:
            version = get_version_of(session, number, tag)
    if version is None:
        raise NoVersionError(dataset)
    return _check(workspace, spark, dataset, version)


def check_waiting(workspace: Workspace, spark: "SparkSession") -> list[Checked]:
    """Decide on every version of the project that was announced and waits for its checks."""
    with workspace.catalog.reading() as session:
        waiting = [
            (get_dataset(session, version.dataset_id).name, version)
            for version in list_waiting(session, workspace.site.spec.name)
        ]
    return [_check(workspace, spark, dataset, version) for dataset, version in waiting]


def _check(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> Checked:
    if version.state == WRITTEN:
        return _decide(workspace, spark, dataset, version)
    if version.state == REJECTED:
        return _recall(workspace, dataset, version)
    place = place_of(workspace, dataset, version)
    with version_read(workspace.site, dataset, version.version_tag):
        frame = format_of(workspace, dataset).read(workspace.site, spark, place)
        audited = audit_version(workspace, spark, place, frame)
    with workspace.catalog.writing() as session:
        record_audit(session, version.dataset_id, version.dataset_version_id, audited)
    return Checked(dataset, version.version_tag, version.state, audited, audited.reason)


def _recall(workspace: Workspace, dataset: str, version: DatasetVersion) -> Checked:
    """Return what was found when a version was rejected: its data is not kept."""
    with workspace.catalog.reading() as session:
        audited = recorded_audit(session, version)
        event = describe_state(session, version)
    reason = (event and event.reason) or ""
    return Checked(dataset, version.version_tag, version.state, audited, reason, recalled=True)


def _decide(
    workspace: Workspace, spark: "SparkSession", dataset: str, version: DatasetVersion
) -> Checked:
    """Receive an announced delivery; read anything else where it was announced."""
    place = place_of(workspace, dataset, version)
    if not place.details and can_receive(workspace, dataset):
        assert version.business_date is not None
        arrival = receive(workspace, spark, dataset, version.business_date)
    else:
        arrival = check_delivery(workspace, spark, version, place)
    tag = arrival.tag or version.version_tag
    return Checked(dataset, tag, arrival.state, arrival.audited, arrival.reason)
