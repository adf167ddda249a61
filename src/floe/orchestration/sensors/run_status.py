"""run_status: start a job or send notifications when a run reaches a state.

Runs before the first evaluation are ignored. A run that this sensor triggered, directly or through
other sensors, starts no further run, but its notifications are sent.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from dagster import (
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    EventLogRecord,
    RunRequest,
    RunsFilter,
    RunStatusChangeRecordsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
)

from floe import clock
from floe.execution.site import Site
from floe.notify import Message, Severity, send
from floe.orchestration.home import web_address
from floe.orchestration.sensors.run_requests import Cause, DeclaredSensor, Starter
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import RunStatusSensor
from floe.spec.platform import Channel

MOST_AT_ONCE = 50
"""Runs per evaluation; the next one takes the rest."""
TIME_LIMIT = timedelta(seconds=25)
"""Later runs wait for the next evaluation: Dagster aborts one after a minute."""
PARTITION = "dagster/partition"
LONGEST_REASON = 500


Event = Literal[
    DagsterEventType.RUN_SUCCESS, DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_START
]


@dataclass(frozen=True)
class State:
    """A state that runs reach."""

    event: Event
    verb: str
    severity: Severity


STATES: Mapping[str, State] = {
    "SUCCESS": State(DagsterEventType.RUN_SUCCESS, "succeeded", "info"),
    "FAILURE": State(DagsterEventType.RUN_FAILURE, "failed", "error"),
    "STARTED": State(DagsterEventType.RUN_START, "started", "info"),
}


@dataclass(frozen=True)
class Notifier:
    """Sends the notifications of a sensor."""

    site: Site
    channels: Mapping[str, Channel]

    def send(self, message: Message) -> list[str]:
        """Send a message to all channels; return the failures."""
        deliveries = send(self.channels, message, self.site.reveal)
        return [
            f"'{delivery.channel}': {delivery.failure}"
            for delivery in deliveries
            if delivery.failure is not None
        ]

    def link(self, run: DagsterRun) -> str:
        return f"{web_address(self.site)}/runs/{run.run_id}"


@dataclass
class Evaluation:
    """The state of one evaluation."""

    position: int
    requests: list[RunRequest] = field(default_factory=list)
    notified: int = 0
    failures: list[str] = field(default_factory=list)
    """The channels that failed, and why."""


@dataclass(frozen=True)
class Watch:
    """Reads which runs reached a state, starts the job and sends notifications."""

    name: str
    state: State
    jobs: frozenset[str]
    """The watched jobs; empty for all."""
    starter: Starter | None
    notifier: Notifier

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Evaluate the sensor once."""
        position = _parse_cursor(context.cursor)
        if position is None:
            newest = context.instance.fetch_run_status_changes(self.state.event, limit=1).records
            position = newest[0].storage_id if newest else 0
            words = f"First evaluation: watching for runs that {self.state.verb} from now on."
            return SensorResult(skip_reason=words, cursor=_dump_cursor(position))
        evaluation = self._read_changes(context, position)
        if evaluation.requests:
            return SensorResult(
                run_requests=evaluation.requests, cursor=_dump_cursor(evaluation.position)
            )
        return SensorResult(
            skip_reason=self._skip_reason(evaluation), cursor=_dump_cursor(evaluation.position)
        )

    def _read_changes(self, context: SensorEvaluationContext, position: int) -> Evaluation:
        evaluation, until = Evaluation(position), clock.now() + TIME_LIMIT
        for record, run in _changes(context.instance, self.state.event, position):
            if run is not None and self._is_watched(context, run):
                self._react(context, evaluation, record, run)
            evaluation.position = record.storage_id
            if clock.now() >= until:
                break
        return evaluation

    def _is_watched(self, context: SensorEvaluationContext, run: DagsterRun) -> bool:
        if self.jobs and run.job_name not in self.jobs:
            return False
        # Several projects may share one Dagster: ignore the runs of others.
        here, origin = context.code_location_origin, run.remote_job_origin
        if here is None or origin is None:
            return True
        theirs = origin.repository_origin.code_location_origin.location_name
        return bool(theirs == here.location_name)

    def _react(
        self,
        context: SensorEvaluationContext,
        evaluation: Evaluation,
        record: EventLogRecord,
        run: DagsterRun,
    ) -> None:
        if self.starter is not None and not self.starter.triggered(run.tags):
            cause = Cause(
                key=run.run_id,
                partition=run.tags.get(PARTITION),
                tags={tag: run.tags[tag] for tag in (BUSINESS_DATE_TAG,) if tag in run.tags},
                parent_tags=run.tags,
            )
            evaluation.requests += self.starter.requests(context.instance, cause)
        if self.notifier.channels:
            evaluation.notified += 1
            failures = self.notifier.send(self._message(context.instance, record, run))
            evaluation.failures += failures
            for failure in failures:
                context.log.error("Notification of run %s failed: %s", run.run_id, failure)

    def _message(
        self, instance: DagsterInstance, record: EventLogRecord, run: DagsterRun
    ) -> Message:
        lines = [f"Job: {run.job_name}", f"Run: {run.run_id}"]
        lines += [f"Partition: {run.tags[PARTITION]}"] if PARTITION in run.tags else []
        if self.state.event is DagsterEventType.RUN_FAILURE:
            lines.append(f"Error: {first_line_of_error(instance, record)}")
        title = f"The job {run.job_name} {self.state.verb}"
        links = {"Dagster": self.notifier.link(run)}
        return Message(title, "\n".join(lines), self.state.severity, links)

    def _skip_reason(self, evaluation: Evaluation) -> str:
        if not evaluation.notified:
            return f"No watched run {self.state.verb}."
        words = f"Sent notifications for {evaluation.notified} runs that {self.state.verb}."
        failed = " ".join(dict.fromkeys(evaluation.failures))
        return f"{words} Failed channels: {failed}" if failed else words


def _changes(
    instance: DagsterInstance, event: Event, position: int
) -> Iterator[tuple[EventLogRecord, DagsterRun | None]]:
    """Yield the changes after a position, with their runs; None for deleted runs."""
    records = instance.fetch_run_status_changes(
        RunStatusChangeRecordsFilter(event, after_storage_id=position),
        limit=MOST_AT_ONCE,
        ascending=True,
    ).records
    run_ids = sorted({record.run_id for record in records})
    run_records = instance.get_run_records(RunsFilter(run_ids=run_ids)) if run_ids else ()
    runs = {record.dagster_run.run_id: record.dagster_run for record in run_records}
    for record in records:
        yield record, runs.get(record.run_id)


def first_line_of_error(instance: DagsterInstance, record: EventLogRecord) -> str:
    """Return the first line of the root cause of a failed run."""
    failed = instance.get_records_for_run(
        record.run_id, of_type=DagsterEventType.STEP_FAILURE, limit=1, ascending=True
    ).records
    event = failed[0].event_log_entry.dagster_event if failed else None
    error = event.step_failure_data.error if event is not None else None
    if error is None:
        entry = record.event_log_entry
        run_event = entry.dagster_event
        data = run_event.job_failure_data if run_event is not None else None
        error = data.error if data is not None else None
        if error is None:
            return _first_line(entry.user_message or (run_event.message if run_event else "") or "")
    while error.cause is not None:
        error = error.cause
    return _first_line(error.message)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:LONGEST_REASON] if lines else "no error message"


def _parse_cursor(cursor: str | None) -> int | None:
    try:
        return int(json.loads(cursor or "")["after"])
    except (ValueError, KeyError, TypeError):
        return None


def _dump_cursor(position: int) -> str:
    return json.dumps({"after": position})


def build_run_status(declared: DeclaredSensor, sensor: RunStatusSensor) -> SensorDefinition:
    """Build the sensor; reject unknown channels."""
    site = declared.loading.site
    watch = Watch(
        name=declared.name,
        state=STATES[sensor.status],
        jobs=frozenset(sensor.watched_jobs),
        starter=None if sensor.job is None else declared.starter(sensor.job),
        notifier=Notifier(site, _channels(declared, sensor)),
    )
    return declared.define(sensor, sensor.job, watch.evaluate)


def _channels(declared: DeclaredSensor, sensor: RunStatusSensor) -> Mapping[str, Channel]:
    """Find the channels: the platform may have changed since compilation."""
    offered = declared.loading.site.platform.notifications
    findings = [
        declared.loading.finding(
            (*declared.path, "notify", index),
            f"the platform has no channel named '{name}'",
            suggest(name, offered, "Declare it in platform.yaml under notifications."),
        )
        for index, name in enumerate(sensor.notify)
        if name not in offered
    ]
    if findings:
        raise SpecError(findings)
    return {name: offered[name] for name in sensor.notify}
