"""run_status: a job starts, or people are told, when a run has got to a state.

It watches from its first look on: what happened before is history. A run that this sensor led to,
itself or through other sensors, starts no further one; people are told of it all the same.
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
from floe.orchestration.sensors.starting import Cause, Declared, Starter
from floe.spec.findings import SpecError
from floe.spec.identity import BUSINESS_DATE_TAG
from floe.spec.nearby import suggest
from floe.spec.orchestration import RunStatusSensor
from floe.spec.platform import Channel

MOST_AT_ONCE = 50
"""How many runs one look takes; the others come with the next."""
PATIENCE = timedelta(seconds=25)
"""After this time a look takes no further run: Dagster gives up on one that takes a minute."""
PARTITION = "dagster/partition"
LONGEST_REASON = 500


Event = Literal[
    DagsterEventType.RUN_SUCCESS, DagsterEventType.RUN_FAILURE, DagsterEventType.RUN_START
]


@dataclass(frozen=True)
class State:
    """A state that runs get to."""

    event: Event
    verb: str
    severity: Severity


STATES: Mapping[str, State] = {
    "SUCCESS": State(DagsterEventType.RUN_SUCCESS, "succeeded", "info"),
    "FAILURE": State(DagsterEventType.RUN_FAILURE, "failed", "error"),
    "STARTED": State(DagsterEventType.RUN_START, "started", "info"),
}


@dataclass(frozen=True)
class Telling:
    """Whom a sensor tells, and how."""

    site: Site
    channels: Mapping[str, Channel]

    def tell(self, message: Message) -> list[str]:
        """Send a message to all channels, and return what went wrong."""
        deliveries = send(self.channels, message, self.site.reveal)
        return [f"'{one.channel}': {one.failure}" for one in deliveries if one.failure is not None]

    def link(self, run: DagsterRun) -> str:
        return f"{web_address(self.site)}/runs/{run.run_id}"


@dataclass
class Look:
    """What one look has come to."""

    place: int
    requests: list[RunRequest] = field(default_factory=list)
    told: int = 0
    failures: list[str] = field(default_factory=list)
    """Who could not be told, and why."""


@dataclass(frozen=True)
class Watch:
    """Reads which runs got to a state, starts the job and tells people."""

    name: str
    state: State
    jobs: frozenset[str]
    """The jobs it watches; none: all of them."""
    starter: Starter | None
    telling: Telling

    def evaluate(self, context: SensorEvaluationContext) -> SensorResult:
        """Look once."""
        place = _place(context.cursor)
        if place is None:
            newest = context.instance.fetch_run_status_changes(self.state.event, limit=1).records
            place = newest[0].storage_id if newest else 0
            words = f"It watches from now on for runs that {self.state.verb}."
            return SensorResult(skip_reason=words, cursor=_written(place))
        look = self._look(context, place)
        if look.requests:
            return SensorResult(run_requests=look.requests, cursor=_written(look.place))
        return SensorResult(skip_reason=self._nothing(look), cursor=_written(look.place))

    def _look(self, context: SensorEvaluationContext, place: int) -> Look:
        look, until = Look(place), clock.now() + PATIENCE
        for record, run in _changes(context.instance, self.state.event, place):
            if run is not None and self._is_watched(context, run):
                self._react(context, look, record, run)
            look.place = record.storage_id
            if clock.now() >= until:
                break
        return look

    def _is_watched(self, context: SensorEvaluationContext, run: DagsterRun) -> bool:
        if self.jobs and run.job_name not in self.jobs:
            return False
        # Several projects may share one Dagster: the runs of others are theirs to watch.
        here, origin = context.code_location_origin, run.remote_job_origin
        if here is None or origin is None:
            return True
        theirs = origin.repository_origin.code_location_origin.location_name
        return bool(theirs == here.location_name)

    def _react(
        self, context: SensorEvaluationContext, look: Look, record: EventLogRecord, run: DagsterRun
    ) -> None:
        if self.starter is not None and not self.starter.led_to(run.tags):
            cause = Cause(
                key=run.run_id,
                partition=run.tags.get(PARTITION),
                tags={tag: run.tags[tag] for tag in (BUSINESS_DATE_TAG,) if tag in run.tags},
                parent_tags=run.tags,
            )
            look.requests += self.starter.requests(context.instance, cause)
        if self.telling.channels:
            look.told += 1
            failures = self.telling.tell(self._message(context.instance, record, run))
            look.failures += failures
            for failure in failures:
                context.log.error("Run %s could not be told to %s", run.run_id, failure)

    def _message(
        self, instance: DagsterInstance, record: EventLogRecord, run: DagsterRun
    ) -> Message:
        lines = [f"Job: {run.job_name}", f"Run: {run.run_id}"]
        lines += [f"Partition: {run.tags[PARTITION]}"] if PARTITION in run.tags else []
        if self.state.event is DagsterEventType.RUN_FAILURE:
            lines.append(f"Error: {first_line_of_error(instance, record)}")
        title = f"The job {run.job_name} {self.state.verb}"
        links = {"Dagster": self.telling.link(run)}
        return Message(title, "\n".join(lines), self.state.severity, links)

    def _nothing(self, look: Look) -> str:
        if not look.told:
            return f"No watched run {self.state.verb}."
        words = f"Told people of {look.told} runs that {self.state.verb}."
        unheard = " ".join(dict.fromkeys(look.failures))
        return f"{words} Not delivered to {unheard}" if unheard else words


def _changes(
    instance: DagsterInstance, event: Event, place: int
) -> Iterator[tuple[EventLogRecord, DagsterRun | None]]:
    """Yield the changes after a place, each with its run; None for a run that was deleted."""
    records = instance.fetch_run_status_changes(
        RunStatusChangeRecordsFilter(event, after_storage_id=place),
        limit=MOST_AT_ONCE,
        ascending=True,
    ).records
    run_ids = sorted({record.run_id for record in records})
    found = instance.get_run_records(RunsFilter(run_ids=run_ids)) if run_ids else ()
    runs = {record.dagster_run.run_id: record.dagster_run for record in found}
    for record in records:
        yield record, runs.get(record.run_id)


def first_line_of_error(instance: DagsterInstance, record: EventLogRecord) -> str:
    """Return the first line of what went wrong first: the cause, not what Dagster put around it."""
    failed = instance.get_records_for_run(
        record.run_id, of_type=DagsterEventType.STEP_FAILURE, limit=1, ascending=True
    ).records
    event = failed[0].event_log_entry.dagster_event if failed else None
    error = event.step_failure_data.error if event is not None else None
    if error is None:
        entry = record.event_log_entry
        happened = entry.dagster_event
        data = happened.job_failure_data if happened is not None else None
        error = data.error if data is not None else None
        if error is None:
            return _first_line(entry.user_message or (happened.message if happened else "") or "")
    while error.cause is not None:
        error = error.cause
    return _first_line(error.message)


def _first_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0][:LONGEST_REASON] if lines else "none was given"


def _place(cursor: str | None) -> int | None:
    try:
        return int(json.loads(cursor or "")["after"])
    except (ValueError, KeyError, TypeError):
        return None


def _written(place: int) -> str:
    return json.dumps({"after": place})


def build_run_status(declared: Declared, sensor: RunStatusSensor) -> SensorDefinition:
    """Make the sensor; a channel that the platform lacks refuses to load."""
    site = declared.loading.site
    watch = Watch(
        name=declared.name,
        state=STATES[sensor.status],
        jobs=frozenset(sensor.watched_jobs),
        starter=None if sensor.job is None else declared.starter(sensor.job),
        telling=Telling(site, _channels(declared, sensor)),
    )
    return declared.define(sensor, sensor.job, watch.evaluate)


def _channels(declared: Declared, sensor: RunStatusSensor) -> Mapping[str, Channel]:
    """Find the channels. Checked here too: the platform may be another than at compile time."""
    offered = declared.loading.site.platform.notifications
    findings = [
        declared.loading.finding(
            (*declared.path, "notify", place),
            f"the platform has no channel named '{name}'",
            suggest(name, offered, "Declare it in platform.yaml under notifications."),
        )
        for place, name in enumerate(sensor.notify)
        if name not in offered
    ]
    if findings:
        raise SpecError(findings)
    return {name: offered[name] for name in sensor.notify}
