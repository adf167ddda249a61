"""Read Dagster's event log, run by run, and tell the catalog of all that has happened.

The log is durable and ordered, and needs nothing of the code that runs. Dagster keeps one for each
run: so the runs that go on or have changed are looked at, each from where it was left. Who is
killed in between reads a part again, and tells the same again, which the catalog takes once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import islice

from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRunStatus,
    EventLogRecord,
    RunRecord,
    RunsFilter,
)

# Not public, and the only way to read the log of a run from a place on.
from dagster._core.event_api import EventLogCursor

from floe.catalog.runs import CANCELLED, find_run, finish_run, list_children
from floe.execution.workspace import Workspace
from floe.orchestration.metadata import VERSION
from floe.orchestration.observing.cursors import Cursor, Place, read_cursor, utc, write_cursor
from floe.orchestration.observing.knowledge import Knowledge
from floe.orchestration.observing.logs import TYPES, Checked, End, fold, planned_of
from floe.orchestration.observing.reports import Failure, Report
from floe.orchestration.observing.spans import exporter_for
from floe.orchestration.observing.telling import tell
from floe.orchestration.observing.translating import RunLog, translate
from floe.spec.identity import dagster_job

PAGE = 1_000
MOST_RUNS = 200
"""How many runs are read in one go; more come with the next."""
PLANNED = frozenset({DagsterEventType.ASSET_MATERIALIZATION_PLANNED})
OVER = frozenset({DagsterRunStatus.SUCCESS, DagsterRunStatus.FAILURE, DagsterRunStatus.CANCELED})


@dataclass(frozen=True)
class Observation:
    """What one look at the log came to."""

    cursor: str
    reports: Sequence[Report] = ()
    runs: int = 0


def observe(
    instance: DagsterInstance,
    workspace: Workspace,
    knowledge: Knowledge | None = None,
    *,
    cursor: str | None = None,
    location: str | None = None,
) -> Observation:
    """Tell the catalog what has happened since a cursor; return the cursor for the next look.

    Of an instance that several code locations share, the runs of one can be asked for.
    """
    spec = workspace.site.spec
    knowledge = knowledge or Knowledge(spec.name, spec.timezone)
    reading, told = read_cursor(cursor), []
    gone, records = _changed(instance, reading)
    for run_id in gone:
        _close_deleted(workspace, run_id)
        reading = reading.without(run_id)
    for record in records:
        run = record.dagster_run
        place = Place(ended=True)
        if _is_of(record, location):
            place, reports = _read_run(instance, knowledge, record, reading.place(run.run_id))
            tell(workspace, knowledge, dagster_job(spec.name, run.job_name), reports)
            told += reports
        reading = reading.having(run.run_id, place, _changed_at(record))
    export = exporter_for(workspace.site) if told else None
    if export is not None:
        export(told)
    return Observation(write_cursor(reading.pruned()), told, len(records))


def observe_run(
    instance: DagsterInstance, workspace: Workspace, knowledge: Knowledge, run_id: str
) -> None:
    """Report one run to the catalog now. The sensor may report it again: it is recorded once."""
    record = instance.get_run_record_by_id(run_id)
    if record is not None:
        _, reports = _read_run(instance, knowledge, record, Place())
        job = dagster_job(workspace.site.spec.name, record.dagster_run.job_name)
        tell(workspace, knowledge, job, reports)


def _changed(instance: DagsterInstance, cursor: Cursor) -> tuple[list[str], list[RunRecord]]:
    """Return the runs that were deleted while they went on, and those to read, the oldest first."""
    going = [run for run, place in cursor.runs.items() if not place.ended]
    found: dict[str, RunRecord] = {}
    for start in range(0, len(going), MOST_RUNS):
        some = RunsFilter(run_ids=going[start : start + MOST_RUNS])
        found |= {one.dagster_run.run_id: one for one in instance.get_run_records(some)}
    gone = [run for run in going if run not in found]
    for record in islice(_newer(instance, cursor, found), MOST_RUNS):
        found[record.dagster_run.run_id] = record
    return gone, sorted(found.values(), key=lambda one: one.storage_id)


def _newer(
    instance: DagsterInstance, cursor: Cursor, known: Mapping[str, RunRecord]
) -> Iterator[RunRecord]:
    """Yield the runs that have changed since the last look, the longest ago first."""
    after = cursor.updated_after
    while True:
        page = instance.get_run_records(
            RunsFilter(updated_after=after),
            limit=MOST_RUNS,
            order_by="update_timestamp",
            ascending=True,
        )
        for record in page:
            run = record.dagster_run.run_id
            if run not in known and cursor.changed.get(run) != _changed_at(record):
                yield record
        if len(page) < MOST_RUNS:
            return
        after = _changed_at(page[-1])


def _read_run(
    instance: DagsterInstance, knowledge: Knowledge, record: RunRecord, before: Place
) -> tuple[Place, list[Report]]:
    """Read the log of a run from where it was left.

    At its end it is read once more from the start: a log that several processes write can show a
    record after one that comes behind it.
    """
    run, over = record.dagster_run, record.dagster_run.status in OVER
    ends = over and not before.ended
    start, told = (0, 0) if ends else (before.start, before.told)
    records = list(_records(instance, run.run_id, TYPES, start))
    folded = fold(records)
    if ends and folded.end is None:
        folded.end = _end_of(record, folded.last)
    planned = planned_of(list(_records(instance, run.run_id, PLANNED, 0))) if records else {}
    log = RunLog(
        run,
        utc(record.create_timestamp),
        _moment(record.start_time),
        folded,
        planned,
        partial(_version_checked, instance),
    )
    reports = [one for one in translate(log, knowledge) if one.place > told]
    place = Place(max(before.start, folded.open_from), max(before.told, folded.last), over)
    return place, reports


def _records(
    instance: DagsterInstance, run_id: str, types: frozenset[DagsterEventType], after: int
) -> Iterator[EventLogRecord]:
    """Yield the records of a run, page by page."""
    cursor = EventLogCursor.from_storage_id(after).to_string() if after else None
    while True:
        page = instance.get_records_for_run(run_id, cursor, set(types), limit=PAGE)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor


def _end_of(record: RunRecord, last: int) -> End:
    """The end of a run that has ended without a word in its log."""
    kinds = {
        DagsterRunStatus.SUCCESS: DagsterEventType.RUN_SUCCESS,
        DagsterRunStatus.FAILURE: DagsterEventType.RUN_FAILURE,
        DagsterRunStatus.CANCELED: DagsterEventType.RUN_CANCELED,
    }
    kind = kinds[record.dagster_run.status]
    at = _moment(record.end_time) or _changed_at(record)
    failed = kind is not DagsterEventType.RUN_SUCCESS
    said = f"Dagster says that the run ended: {record.dagster_run.status.value}."
    return End(last + 1, at, kind, Failure(said) if failed else None)


def _version_checked(instance: DagsterInstance, checked: Checked) -> str:
    """Return the version that a check was made on, if it is known which materialisation it was."""
    target = checked.evaluation.target_materialization_data
    if target is None:
        return ""
    made = frozenset({DagsterEventType.ASSET_MATERIALIZATION})
    for record in _records(instance, target.run_id, made, 0):
        event = record.event_log_entry.dagster_event
        told = event.step_materialization_data.materialization if event is not None else None
        same = record.event_log_entry.timestamp == target.timestamp
        if told is not None and same and told.asset_key == checked.evaluation.asset_key:
            version = told.metadata.get(VERSION)
            return "" if version is None else str(version.value)
    return ""


def _close_deleted(workspace: Workspace, run_id: str) -> None:
    """End the runs of a Dagster run that somebody deleted: nobody else will."""
    with workspace.catalog.writing() as session:
        whole = find_run(session, run_id)
        for run in [*([] if whole is None else [whole]), *list_children(session, run_id)]:
            finish_run(session, run, CANCELLED)


def _is_of(record: RunRecord, location: str | None) -> bool:
    origin = record.dagster_run.remote_job_origin
    return location is None or origin is None or origin.location_name == location


def _changed_at(record: RunRecord) -> datetime:
    return utc(record.update_timestamp)


def _moment(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
