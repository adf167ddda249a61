"""Observe Dagster runs: read their event logs and report them to the catalog.

The log is durable and ordered, and needs nothing from the code that runs. Dagster keeps one for
each run, so each run that is in progress or has changed is read from where it was left. An
observer that is killed reads a part again and reports it again; the catalog records it once.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice

import msgspec
from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRunStatus,
    DefaultSensorStatus,
    EventLogRecord,
    RunRecord,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from floe.catalog.runs import CANCELLED, find_run, finish_run, list_children
from floe.execution.site import Site
from floe.execution.spans import span_exporter
from floe.execution.workspace import Workspace
from floe.orchestration.dagster_internals import EventLogCursor
from floe.orchestration.loading import Loading, Parts
from floe.orchestration.metadata import VERSION
from floe.orchestration.observing.asset_index import AssetIndex, index_assets
from floe.orchestration.observing.catalog_writer import write_reports
from floe.orchestration.observing.reports import Failure, Report, span_of
from floe.orchestration.observing.run_logs import (
    OBSERVED_TYPES,
    CheckEvent,
    End,
    fold_records,
    planned_assets,
)
from floe.orchestration.observing.translation import RunLog, translate
from floe.orchestration.runtime import shared_workspace
from floe.spec.identity import dagster_job

PAGE_SIZE = 1_000
MOST_RUNS = 200
"""How many runs are read in one go; the next observation reads the others."""
PLANNED_TYPES = frozenset({DagsterEventType.ASSET_MATERIALIZATION_PLANNED})
MATERIALIZED_TYPES = frozenset({DagsterEventType.ASSET_MATERIALIZATION})
END_TYPES = {
    DagsterRunStatus.SUCCESS: DagsterEventType.RUN_SUCCESS,
    DagsterRunStatus.FAILURE: DagsterEventType.RUN_FAILURE,
    DagsterRunStatus.CANCELED: DagsterEventType.RUN_CANCELED,
}
# A run may be stored a little later than its own timestamp says.
OVERLAP = timedelta(seconds=30)
SENSOR = "floe_observer"
SENSOR_SECONDS = 5


class LogPosition(msgspec.Struct, frozen=True, rename={"reported": "told"}):
    """How far the log of a run was read. Stored cursors call `reported` "told"."""

    start: int = 0
    """Everything before is finished; unfinished steps are read again from the start."""
    reported: int = 0
    """Everything up to here was reported."""
    ended: bool = False


@dataclass(frozen=True)
class Cursor:
    """How far all logs were read."""

    since: datetime | None = None
    """When the run that changed last was changed."""
    runs: Mapping[str, LogPosition] = field(default_factory=dict)
    """Runs in progress, and those that ended so recently that they are listed again."""
    changed: Mapping[str, datetime] = field(default_factory=dict)
    """When each finished run was changed."""

    @property
    def updated_after(self) -> datetime | None:
        return None if self.since is None else self.since - OVERLAP

    def position(self, run_id: str) -> LogPosition:
        return self.runs.get(run_id, LogPosition())

    def with_run(self, run_id: str, position: LogPosition, changed: datetime) -> "Cursor":
        """Return a cursor that has read a run up to a position."""
        since = changed if self.since is None else max(self.since, changed)
        ended = {**self.changed, run_id: changed} if position.ended else self.changed
        return replace(self, since=since, runs={**self.runs, run_id: position}, changed=ended)

    def without_run(self, run_id: str) -> "Cursor":
        """Return a cursor without a run."""
        runs = {run: position for run, position in self.runs.items() if run != run_id}
        return replace(self, runs=runs)

    def pruned(self) -> "Cursor":
        """Return a cursor without the runs that ended too long ago to be listed again."""
        after = self.updated_after
        old = {run for run, at in self.changed.items() if after is not None and at <= after}
        return replace(
            self,
            runs={run: position for run, position in self.runs.items() if run not in old},
            changed={run: at for run, at in self.changed.items() if run not in old},
        )

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """Parse a stored cursor; without one, start at the beginning."""
        return cls() if not text else msgspec.json.decode(text.encode(), type=cls)

    def dump(self) -> str:
        return msgspec.json.encode(self).decode()


@dataclass(frozen=True)
class Observation:
    """The result of one observation."""

    cursor: str
    reports: Sequence[Report] = ()
    runs: int = 0


def build_observer(loading: Loading, parts: Parts) -> Parts:
    """Add the sensor that observes every run of the project."""
    site = loading.site
    index = index_assets(parts, site.spec.name, site.spec.timezone)
    return replace(parts, sensors=(*parts.sensors, _make_sensor(site, index)))


def _make_sensor(site: Site, index: AssetIndex) -> SensorDefinition:
    """Return the sensor that reports runs to the catalog; it starts none.

    Its cursor is stored after everything was reported: if Dagster dies in between, runs are
    reported again, and the catalog records them once.
    """

    def evaluate(context: SensorEvaluationContext) -> SensorResult:
        origin = context.code_location_origin
        observation = observe(
            context.instance,
            shared_workspace(site),
            index,
            cursor=context.cursor,
            location=None if origin is None else origin.location_name,
        )
        count, runs = len(observation.reports), observation.runs
        summary = f"Reported {count} events of {runs} runs to the catalog."
        return SensorResult(skip_reason=summary, cursor=observation.cursor)

    return SensorDefinition(
        name=SENSOR,
        description="Reports every run of an asset, a model or a check to the catalog.",
        evaluation_fn=evaluate,
        minimum_interval_seconds=SENSOR_SECONDS,
        default_status=DefaultSensorStatus.RUNNING,
    )


def observe(
    instance: DagsterInstance,
    workspace: Workspace,
    index: AssetIndex | None = None,
    *,
    cursor: str | None = None,
    location: str | None = None,
) -> Observation:
    """Report what has happened since a cursor; return the cursor for the next observation.

    If several code locations share an instance, `location` limits it to the runs of one.
    """
    spec = workspace.site.spec
    index = index or AssetIndex(spec.name, spec.timezone)
    progress, reports = Cursor.parse(cursor), []
    deleted, records = _changed_runs(instance, progress)
    for run_id in deleted:
        _close_deleted(workspace, run_id)
        progress = progress.without_run(run_id)
    for record in records:
        run = record.dagster_run
        position = LogPosition(ended=True)
        if _is_in_location(record, location):
            position, new = _read_run(instance, index, record, progress.position(run.run_id))
            write_reports(workspace, index, dagster_job(spec.name, run.job_name), new)
            reports += new
        progress = progress.with_run(run.run_id, position, _changed_at(record))
    export = span_exporter(workspace.site) if reports else None
    if export is not None:
        export([span_of(report) for report in reports])
    return Observation(progress.pruned().dump(), reports, len(records))


def observe_run(
    instance: DagsterInstance, workspace: Workspace, index: AssetIndex, run_id: str
) -> None:
    """Report one run now. The sensor may report it again: it is recorded once."""
    record = instance.get_run_record_by_id(run_id)
    if record is not None:
        _, reports = _read_run(instance, index, record, LogPosition())
        job = dagster_job(workspace.site.spec.name, record.dagster_run.job_name)
        write_reports(workspace, index, job, reports)


def _changed_runs(instance: DagsterInstance, cursor: Cursor) -> tuple[list[str], list[RunRecord]]:
    """Return runs deleted while in progress, and the runs to read, oldest first."""
    in_progress = [run for run, position in cursor.runs.items() if not position.ended]
    records: dict[str, RunRecord] = {}
    for start in range(0, len(in_progress), MOST_RUNS):
        page = RunsFilter(run_ids=in_progress[start : start + MOST_RUNS])
        records |= {record.dagster_run.run_id: record for record in instance.get_run_records(page)}
    deleted = [run for run in in_progress if run not in records]
    for record in islice(_newer_runs(instance, cursor, records), MOST_RUNS):
        records[record.dagster_run.run_id] = record
    return deleted, sorted(records.values(), key=lambda record: record.storage_id)


def _newer_runs(
    instance: DagsterInstance, cursor: Cursor, known: Mapping[str, RunRecord]
) -> Iterator[RunRecord]:
    """Yield the runs that have changed since the last observation, in order of change."""
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
    instance: DagsterInstance, index: AssetIndex, record: RunRecord, before: LogPosition
) -> tuple[LogPosition, list[Report]]:
    """Read the log of a run from where it was left.

    When the run ends, its log is read once more from the start: a log that several processes
    write can show a record after one with a later position.
    """
    run, is_over = record.dagster_run, record.dagster_run.status in END_TYPES
    ends_now = is_over and not before.ended
    start, reported = (0, 0) if ends_now else (before.start, before.reported)
    records = list(_read_records(instance, run.run_id, OBSERVED_TYPES, start))
    folded = fold_records(records)
    if ends_now and folded.end is None:
        folded.end = _missing_end(record, folded.last)
    planned = _read_records(instance, run.run_id, PLANNED_TYPES, 0) if records else ()
    log = RunLog(
        run,
        _as_utc(record.create_timestamp),
        _from_seconds(record.start_time),
        folded,
        planned_assets(list(planned)),
        partial(_checked_version, instance),
    )
    reports = [report for report in translate(log, index) if report.position > reported]
    position = LogPosition(
        max(before.start, folded.open_from), max(before.reported, folded.last), is_over
    )
    return position, reports


def _read_records(
    instance: DagsterInstance, run_id: str, types: frozenset[DagsterEventType], after: int
) -> Iterator[EventLogRecord]:
    """Yield the records of a run, page by page."""
    cursor = EventLogCursor.from_storage_id(after).to_string() if after else None
    while True:
        page = instance.get_records_for_run(run_id, cursor, set(types), limit=PAGE_SIZE)
        yield from page.records
        if not page.has_more:
            return
        cursor = page.cursor


def _missing_end(record: RunRecord, last: int) -> End:
    """Return the end of a run whose log has none."""
    status = record.dagster_run.status
    kind = END_TYPES[status]
    at = _from_seconds(record.end_time) or _changed_at(record)
    failed = kind is not DagsterEventType.RUN_SUCCESS
    message = f"The run ended as {status.value}; its log gives no reason."
    return End(last + 1, at, kind, Failure(message) if failed else None)


def _checked_version(instance: DagsterInstance, check: CheckEvent) -> str:
    """Return the version a check was run on; empty if unknown."""
    target = check.evaluation.target_materialization_data
    if target is None:
        return ""
    for record in _read_records(instance, target.run_id, MATERIALIZED_TYPES, 0):
        event = record.event_log_entry.dagster_event
        if event is None or record.event_log_entry.timestamp != target.timestamp:
            continue
        materialization = event.step_materialization_data.materialization
        if materialization.asset_key == check.evaluation.asset_key:
            version = materialization.metadata.get(VERSION)
            return "" if version is None else str(version.value)
    return ""


def _close_deleted(workspace: Workspace, run_id: str) -> None:
    """Cancel the runs of a deleted Dagster run, because nobody else will end them."""
    with workspace.catalog.writing() as session:
        root = find_run(session, run_id)
        for run in [*([] if root is None else [root]), *list_children(session, run_id)]:
            finish_run(session, run, CANCELLED)


def _is_in_location(record: RunRecord, location: str | None) -> bool:
    origin = record.dagster_run.remote_job_origin
    return location is None or origin is None or origin.location_name == location


def _changed_at(record: RunRecord) -> datetime:
    return _as_utc(record.update_timestamp)


def _as_utc(moment: datetime) -> datetime:
    """Dagster's run storage returns times in UTC, with or without a time zone."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _from_seconds(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
