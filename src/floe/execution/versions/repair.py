"""Repair what a killed process left: finish what was published, let go of the rest."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from floe.catalog.datasets import get_dataset
from floe.catalog.leases import is_held, read_lease
from floe.catalog.shown import details_of
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import (
    ABANDONED,
    PUBLISHING,
    READY,
    WRITING,
    advance_version,
    get_version_by_id,
    list_of_run,
    list_unfinished,
)
from floe.execution.holders import is_dead
from floe.execution.sparks import Sparks
from floe.execution.versions.drafts import finish_publish
from floe.execution.versions.places import format_of, place_of
from floe.execution.versions.writers import end_writer
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

LONGEST_WAIT = timedelta(minutes=10)


@dataclass(frozen=True)
class Repaired:
    """A version that was left unfinished, and what became of it."""

    dataset: str
    tag: str
    state: str


def repair_versions(workspace: Workspace, sparks: Sparks) -> list[Repaired]:
    """Bring every version that nobody works on any more to an end.

    Spark is asked for only if there is something to repair.
    """
    if not any(_left_behind(workspace)):
        return []
    lease = f"repair/{workspace.site.spec.name}"
    with workspace.leases.hold(lease, wait=LONGEST_WAIT), sparks.session() as spark:
        # Looked for again: another process may have been at it.
        left = list(_left_behind(workspace))
        # All of them first: one session may write several.
        for version, _ in left:
            end_writer(sparks, details_of(version))
        return [_repair(workspace, spark, version, name) for version, name in left]


def finish_of_run(workspace: Workspace, sparks: Sparks, run_id: str) -> list[DatasetVersion]:
    """Finish what a failed attempt of a run had announced; return all that the run has made."""
    with workspace.catalog.reading() as session:
        made = list_of_run(session, run_id)
        names = {one.dataset_id: get_dataset(session, one.dataset_id).name for one in made}
    begun = [version for version in made if version.state == PUBLISHING]
    if begun:
        with sparks.session() as spark:
            for version in begun:
                _repair(workspace, spark, version, names[version.dataset_id])
    with workspace.catalog.reading() as session:
        return [version for version in list_of_run(session, run_id) if version.state == READY]


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
    place = place_of(workspace, dataset, version)
    form = format_of(workspace, dataset)
    whole = version.state == PUBLISHING and form.is_whole(workspace.site, spark, place)
    if whole:
        finish_publish(workspace, spark, version.dataset_version_id, place, form)
    else:
        form.discard(workspace.site, spark, place)
        with workspace.catalog.writing() as session:
            row = get_version_by_id(session, version.dataset_version_id)
            if row.state in (WRITING, PUBLISHING):
                advance_version(session, row, ABANDONED, reason="its writer was killed")
    return Repaired(dataset, version.version_tag, "READY" if whole else "ABANDONED")
