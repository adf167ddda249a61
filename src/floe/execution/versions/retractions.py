"""Retract a version: first in the catalog, then the stable name stops showing it.

Triggers and plans use the catalog, so nothing starts on the version after the first step. That
step marks the retraction as pending. If floe is killed before the stable name is updated, the mark
stays, and the next start finishes the retraction.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from floe.catalog.audit import record_audit
from floe.catalog.datasets import find_dataset, get_dataset
from floe.catalog.impact import DerivedVersion, list_derived_versions
from floe.catalog.stable_names import (
    PENDING,
    details_of,
    find_shown,
    is_pending,
    is_whole,
    list_ready_after,
    list_retracted_with,
    retract_and_mark,
    with_details,
)
from floe.catalog.tables import DatasetVersion
from floe.catalog.version_queries import StateEvent, describe_state, get_version, get_version_by_id
from floe.catalog.versions import RETRACTED
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.formats.contract import Format, StoredVersion, VersionUnreadableError
from floe.execution.leases import HeldLease, LeaseTakenError
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.version_access import format_of, stored_version, table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

MAX_WAIT = timedelta(hours=1)


class RetractionUnfinishedError(FloeError):
    """A version was retracted, but the stable name could not be updated."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        super().__init__(
            f"Version {tag} of '{dataset}' is retracted and triggers nothing, but the stable name "
            f"still shows it: {reason}. Repeat the command, or let the next run finish it."
        )


class AlreadyRetractedError(FloeError):
    """A version was already retracted."""

    def __init__(self, dataset: str, tag: str, event: StateEvent | None) -> None:
        parts = [f"Version {tag} of '{dataset}' was already retracted"]
        if event is not None:
            parts.append(f" on {event.occurred_at:%Y-%m-%d %H:%M}Z")
            parts.append(f" by {event.actor}" if event.actor else "")
            parts.append(f": {event.reason}" if event.reason else "")
        super().__init__("".join(parts).rstrip(".") + ".")


@dataclass(frozen=True)
class Retraction:
    """The result of a retraction."""

    dataset: str
    tag: str
    ready_again: str | None = None
    """The earlier version that is READY again."""
    was_shown: bool = False
    """Whether the stable name showed it."""
    shows: str | None = None
    """The version that the stable name shows instead; None if nothing."""
    carried_by: tuple[str, ...] = ()
    """Later appends and merges that still contain its rows."""
    built_on: tuple[DerivedVersion, ...] = ()
    """Readable versions that were computed from it, directly or indirectly."""
    problem: str = ""
    """Why the format could not hide it; empty if it could."""


@dataclass(frozen=True)
class _Marked:
    """A retraction that is recorded in the catalog."""

    version_id: int
    dataset: str
    result: Retraction
    pending: bool


def retract(
    workspace: Workspace, sparks: SparkSessions, name: str, tag: str, *, reason: str, actor: str
) -> Retraction:
    """Retract a version; the stable name shows the previous version again."""
    with workspace.catalog.reading() as session:
        dataset = find_dataset(session, name).name
    with workspace.leases.hold(table_lease(workspace, dataset), wait=MAX_WAIT) as lease:
        marked = _mark(workspace, name, tag, reason=reason, actor=actor)
        faults.point("retracted")
        return _change_name(workspace, sparks, marked, lease) if marked.pending else marked.result


def finish_retractions(workspace: Workspace, sparks: SparkSessions) -> list[Retraction]:
    """Finish the pending retractions of killed processes. Starts Spark only if needed."""
    return [
        done
        for version_id, dataset in _left_behind(workspace)
        if (done := _finish_left(workspace, sparks, version_id, dataset)) is not None
    ]


def _left_behind(workspace: Workspace) -> list[tuple[int, str]]:
    declared = workspace.site.spec.datasets
    with workspace.catalog.reading() as session:
        left = list_retracted_with(session, workspace.site.spec.name, PENDING)
        named = [
            (version.dataset_version_id, get_dataset(session, version.dataset_id).name)
            for version in left
            if is_pending(version)
        ]
    return [(version_id, name) for version_id, name in named if name in declared]


def _finish_left(
    workspace: Workspace, sparks: SparkSessions, version_id: int, dataset: str
) -> Retraction | None:
    try:
        with workspace.leases.hold(table_lease(workspace, dataset), wait=None) as lease:
            with workspace.catalog.reading() as session:
                version = get_version_by_id(session, version_id)
            if not is_pending(version):
                return None
            result = Retraction(dataset, version.version_tag, was_shown=True)
            marked = _Marked(version_id, dataset, result, pending=True)
            return _change_name(workspace, sparks, marked, lease)
    except LeaseTakenError:
        # The table is being written, or the retraction is still active. A later start finishes it.
        return None


def _mark(workspace: Workspace, name: str, tag: str, *, reason: str, actor: str) -> _Marked:
    """Record the retraction, and whether the stable name must be updated."""
    with workspace.catalog.writing() as session:
        dataset = find_dataset(session, name)
        version = get_version(session, dataset, tag)
        # For a dataset of another project, that project's next start finishes the retraction.
        here = dataset.namespace == workspace.lake and dataset.name in workspace.site.spec.datasets
        if version.state == RETRACTED and is_pending(version):
            result = Retraction(dataset.name, tag, was_shown=True)
            return _Marked(version.dataset_version_id, dataset.name, result, pending=here)
        if version.state == RETRACTED:
            raise AlreadyRetractedError(dataset.name, tag, describe_state(session, version))
        before = version.state
        previous = retract_and_mark(session, version, reason=reason, actor=actor)
        shown = is_pending(version)
        carried = () if shown else _carriers(session, version)
        record_audit(
            session,
            actor,
            "version.retract",
            "VERSION",
            f"{dataset.full_name}@{tag}",
            before={"state": before},
            after={"state": RETRACTED, "ready_again": previous.version_tag if previous else None},
            reason=reason,
        )
        again = previous.version_tag if previous else None
        built_on = tuple(list_derived_versions(session, version.dataset_version_id))
        result = Retraction(dataset.name, tag, again, shown, carried_by=carried, built_on=built_on)
        return _Marked(version.dataset_version_id, dataset.name, result, pending=shown and here)


def _carriers(session: "Session", version: DatasetVersion) -> tuple[str, ...]:
    if details_of(version).get("mode") not in ("append", "merge"):
        return ()
    return tuple(list_ready_after(session, version))


def _change_name(
    workspace: Workspace, sparks: SparkSessions, marked: _Marked, lease: HeldLease
) -> Retraction:
    from pyspark.errors import PySparkException

    lease.check()
    try:
        with sparks.session() as spark:
            shows, problem = _show_instead(workspace, spark, marked)
    except (FloeError, PySparkException, OSError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise RetractionUnfinishedError(marked.dataset, marked.result.tag, reason) from error
    faults.point("shown")
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, marked.version_id)
        details = {name: value for name, value in details_of(version).items() if name != PENDING}
        version.metadata_json = with_details(version, details)
    return replace(marked.result, shows=shows, problem=problem)


def _show_instead(
    workspace: Workspace, spark: "SparkSession", marked: _Marked
) -> tuple[str | None, str]:
    """Make the stable name show the version the catalog selects, or nothing."""
    with workspace.catalog.reading() as session:
        version = get_version_by_id(session, marked.version_id)
        wanted = find_shown(session, version)
        away = stored_version(workspace, marked.dataset, version)
        instead = None if wanted is None else stored_version(workspace, marked.dataset, wanted)
    form = format_of(workspace, marked.dataset)
    if wanted is not None and instead is not None:
        # Restore the same extent: a single partition if the retracted version was one.
        instead = replace(instead, details={**instead.details, "whole": is_whole(version)})
        try:
            _show(workspace, spark, form, wanted.dataset_version_id, instead)
        except VersionUnreadableError:
            # Some formats keep only the newest version. Then only hide the retracted one.
            pass
        else:
            return wanted.version_tag, ""
    try:
        form.hide(workspace.site, spark, away)
    except VersionUnreadableError as error:
        return None, str(error)
    return None, ""


def _show(
    workspace: Workspace,
    spark: "SparkSession",
    form: Format,
    version_id: int,
    stored: StoredVersion,
) -> None:
    noted = form.show(workspace.site, spark, stored)
    if noted is None:
        return
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, version_id)
        # Keep the recorded extent: the version may have been shown only in part.
        more = {name: value for name, value in noted.items() if name != "whole"}
        version.metadata_json = with_details(version, {**details_of(version), **more})
