"""Repair versions that a killed process left: finish or abandon them."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.leases import is_held, read_lease
from floe.catalog.stable_names import details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import get_version_by_id, list_run_versions, list_unfinished
from floe.catalog.versions import ABANDONED, PUBLISHING, READY, WRITING, advance_version
from floe.execution.os_processes import is_dead
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.drafts import finish_publish
from floe.execution.versions.version_access import end_writer, format_of, stored_version
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

MAX_WAIT = timedelta(minutes=10)


@dataclass(frozen=True)
class Repaired:
    """A version that was left unfinished, and its state after the repair."""

    dataset: str
    tag: str
    state: str


def repair_versions(workspace: Workspace, sparks: SparkSessions) -> list[Repaired]:
    """Finish or abandon every version whose writer is gone.

    Starts Spark only if there is something to repair.
    """
    if not any(_left_behind(workspace)):
        return []
    lease = f"repair/{workspace.site.spec.name}"
    with workspace.leases.hold(lease, wait=MAX_WAIT), sparks.session() as spark:
        # Look again under the lease: another process may have repaired some.
        left = list(_left_behind(workspace))
        # End all writers first, because one session may write several versions.
        for version, _ in left:
            end_writer(sparks, details_of(version))
        return [_repair(workspace, spark, version, name) for version, name in left]


def finish_run_versions(
    workspace: Workspace, sparks: SparkSessions, run_id: str
) -> list[DatasetVersion]:
    """Finish PUBLISHING versions of a failed attempt; return the run's READY ones."""
    with workspace.catalog.reading() as session:
        versions = list_run_versions(session, run_id)
        names = {
            version.dataset_id: get_dataset(session, version.dataset_id).name
            for version in versions
        }
    begun = [version for version in versions if version.state == PUBLISHING]
    if begun:
        with sparks.session() as spark:
            for version in begun:
                _repair(workspace, spark, version, names[version.dataset_id])
    with workspace.catalog.reading() as session:
        return [version for version in list_run_versions(session, run_id) if version.state == READY]


def _left_behind(workspace: Workspace) -> Iterator[tuple[DatasetVersion, str]]:
    with workspace.catalog.reading() as session:
        for version in list_unfinished(session, workspace.site.spec.name):
            lease = read_lease(session, str(details_of(version).get("lease")))
            if is_held(lease) and lease is not None and not is_dead(lease.holder):
                continue
            name = get_dataset(session, version.dataset_id).name
            if name in workspace.site.spec.datasets:
                yield version, name


def _repair(
    workspace: Workspace, spark: "SparkSession", version: DatasetVersion, dataset: str
) -> Repaired:
    stored = stored_version(workspace, dataset, version)
    form = format_of(workspace, dataset)
    whole = version.state == PUBLISHING and form.is_whole(workspace.site, spark, stored)
    if whole:
        finish_publish(workspace, spark, version.dataset_version_id, stored, form)
    else:
        form.discard(workspace.site, spark, stored)
        with workspace.catalog.writing() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            if row.state in (WRITING, PUBLISHING):
                advance_version(session, row, ABANDONED, reason="its writer was killed")
    return Repaired(dataset, version.version_tag, "READY" if whole else "ABANDONED")
