"""Take a version back: the catalog says so first, then the stable name stops showing it.

The catalog is what triggers and plans go by, so nothing starts on a retracted version from the
first step on. That step leaves a note on the version; whoever is killed before the stable name was
changed leaves the note behind, and the next start finishes from what the catalog says then.
"""

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from floe.catalog.audit import record_audit
from floe.catalog.datasets import find_dataset, get_dataset
from floe.catalog.derivation import BuiltOn, list_built_on
from floe.catalog.retention import (
    StateEvent,
    describe_state,
    list_ready_after,
    list_retracted_with,
)
from floe.catalog.shown import (
    PENDING,
    details_of,
    find_shown,
    is_pending,
    is_whole,
    take_back,
    with_details,
)
from floe.catalog.tables import DatasetVersion
from floe.catalog.versions import RETRACTED, get_version, get_version_by_id
from floe.errors import FloeError
from floe.execution import faults
from floe.execution.formats.contract import Format, VersionPlace, VersionUnreadableError
from floe.execution.leases import Held, LeaseTakenError
from floe.execution.sparks import Sparks
from floe.execution.versions.places import format_of, place_of
from floe.execution.versions.tables import table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession
    from sqlalchemy.orm import Session

LONGEST_WAIT = timedelta(hours=1)


class RetractionUnfinishedError(FloeError):
    """A version is retracted, and the stable name could not be changed."""

    def __init__(self, dataset: str, tag: str, reason: str) -> None:
        super().__init__(
            f"Version {tag} of '{dataset}' is retracted and starts nothing any more, but the "
            f"stable name still shows it: {reason}. The next run finishes that, or the same "
            "command again."
        )


class AlreadyRetractedError(FloeError):
    """A version is to be taken back that was taken back before."""

    def __init__(self, dataset: str, tag: str, event: StateEvent | None) -> None:
        said = [f"Version {tag} of '{dataset}' is retracted already"]
        if event is not None:
            said.append(f", on {event.occurred_at:%Y-%m-%d %H:%M}Z")
            said.append(f" by {event.actor}" if event.actor else "")
            said.append(f": {event.reason}" if event.reason else "")
        super().__init__("".join(said).rstrip(".") + ".")


@dataclass(frozen=True)
class Retraction:
    """What became of a version that was taken back."""

    dataset: str
    tag: str
    ready_again: str | None = None
    """The version that is READY in its place."""
    was_shown: bool = False
    """Whether the stable name showed it."""
    shows: str | None = None
    """What the stable name shows instead; nothing if nothing could replace it."""
    carried_by: tuple[str, ...] = ()
    """Later versions that were built on it and still hold its rows."""
    built_on: tuple[BuiltOn, ...] = ()
    """Versions that were made from it, directly or through others, and can still be read."""
    problem: str = ""
    """Why the format could not take it back, if it could not."""


@dataclass(frozen=True)
class _Marked:
    """A retraction that the catalog knows."""

    version_id: int
    dataset: str
    result: Retraction
    pending: bool


def retract(
    workspace: Workspace, sparks: Sparks, name: str, tag: str, *, reason: str, actor: str
) -> Retraction:
    """Take a version back. Where the stable name showed it, the one before is shown again."""
    with workspace.catalog.reading() as session:
        dataset = find_dataset(session, name).name
    with workspace.leases.hold(table_lease(workspace, dataset), wait=LONGEST_WAIT) as lease:
        marked = _mark(workspace, name, tag, reason=reason, actor=actor)
        faults.point("retracted")
        return _change_name(workspace, sparks, marked, lease) if marked.pending else marked.result


def finish_retractions(workspace: Workspace, sparks: Sparks) -> list[Retraction]:
    """Finish the retractions of processes that were killed; Spark only if there are any."""
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
            (one.dataset_version_id, get_dataset(session, one.dataset_id).name)
            for one in left
            if is_pending(one)
        ]
    return [(number, name) for number, name in named if name in declared]


def _finish_left(
    workspace: Workspace, sparks: Sparks, version_id: int, dataset: str
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
        # A writer is at work on the table, or whoever retracts still is. A later start does it.
        return None


def _mark(workspace: Workspace, name: str, tag: str, *, reason: str, actor: str) -> _Marked:
    """Tell the catalog: the version is retracted, and whether the stable name has to follow."""
    with workspace.catalog.writing() as session:
        dataset = find_dataset(session, name)
        version = get_version(session, dataset, tag)
        # Of another project's dataset the note stays: its own next start finishes.
        here = dataset.namespace == workspace.lake and dataset.name in workspace.site.spec.datasets
        if version.state == RETRACTED and is_pending(version):
            result = Retraction(dataset.name, tag, was_shown=True)
            return _Marked(version.dataset_version_id, dataset.name, result, pending=here)
        if version.state == RETRACTED:
            raise AlreadyRetractedError(dataset.name, tag, describe_state(session, version))
        before = version.state
        previous = take_back(session, version, reason=reason, actor=actor)
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
        built_on = tuple(list_built_on(session, version.dataset_version_id))
        result = Retraction(dataset.name, tag, again, shown, carried_by=carried, built_on=built_on)
        return _Marked(version.dataset_version_id, dataset.name, result, pending=shown and here)


def _carriers(session: "Session", version: DatasetVersion) -> tuple[str, ...]:
    if details_of(version).get("mode") not in ("append", "merge"):
        return ()
    return tuple(list_ready_after(session, version))


def _change_name(workspace: Workspace, sparks: Sparks, marked: _Marked, lease: Held) -> Retraction:
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
    """Let the stable name show what the catalog says now, or nothing."""
    with workspace.catalog.reading() as session:
        version = get_version_by_id(session, marked.version_id)
        wanted = find_shown(session, version)
        away = place_of(workspace, marked.dataset, version)
        instead = None if wanted is None else place_of(workspace, marked.dataset, wanted)
    form = format_of(workspace, marked.dataset)
    if wanted is not None and instead is not None:
        # As much as was retracted: of a table's snapshot one partition, if the version was one.
        instead = replace(instead, details={**instead.details, "whole": is_whole(version)})
        try:
            _show(workspace, spark, form, wanted.dataset_version_id, instead)
        except VersionUnreadableError:
            # Some formats keep only their newest version. Then at least this one goes.
            pass
        else:
            return wanted.version_tag, ""
    try:
        form.hide(workspace.site, spark, away)
    except VersionUnreadableError as error:
        return None, str(error)
    return None, ""


def _show(
    workspace: Workspace, spark: "SparkSession", form: Format, version_id: int, place: VersionPlace
) -> None:
    noted = form.show(workspace.site, spark, place)
    if noted is None:
        return
    with workspace.catalog.writing() as session:
        version = get_version_by_id(session, version_id)
        # How much the version is stays as it was: it may have been shown as a part of itself.
        more = {name: value for name, value in noted.items() if name != "whole"}
        version.metadata_json = with_details(version, {**details_of(version), **more})
