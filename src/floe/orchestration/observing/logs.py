"""The event log of a Dagster run, folded into steps and their attempts. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    DagsterEventType,
    EventLogRecord,
)

from floe.orchestration.observing.reports import Failure

BEGINS = frozenset({DagsterEventType.STEP_START, DagsterEventType.STEP_RESTARTED})
ENDS = frozenset(
    {
        DagsterEventType.STEP_SUCCESS,
        DagsterEventType.STEP_FAILURE,
        DagsterEventType.STEP_UP_FOR_RETRY,
    }
)
RUN_ENDS = frozenset(
    {
        DagsterEventType.RUN_SUCCESS,
        DagsterEventType.RUN_FAILURE,
        DagsterEventType.RUN_CANCELED,
    }
)
TYPES = frozenset(
    {
        *BEGINS,
        *ENDS,
        *RUN_ENDS,
        DagsterEventType.RUN_START,
        DagsterEventType.ASSET_MATERIALIZATION,
        DagsterEventType.ASSET_CHECK_EVALUATION,
    }
)
"""What is read of a log; the rest is for people."""


@dataclass(frozen=True)
class Planned:
    """What a run is to make, as Dagster noted it before it started."""

    key: AssetKey
    partitions: tuple[str, ...] = ()

    @property
    def ranged(self) -> bool:
        """Whether the run is for several partitions at once."""
        return len(self.partitions) > 1


@dataclass(frozen=True)
class Made:
    """A materialisation."""

    place: int
    at: datetime
    key: AssetKey
    partition: str | None
    metadata: Mapping[str, Any]


@dataclass(frozen=True)
class Checked:
    """The verdict of a check."""

    place: int
    at: datetime
    evaluation: AssetCheckEvaluation


@dataclass(frozen=True)
class End:
    """How something ended."""

    place: int
    at: datetime
    type: DagsterEventType
    failure: Failure | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What the step said of its failure."""

    @property
    def final(self) -> bool:
        """Whether nothing comes after it: another attempt does after some failures."""
        return self.type is not DagsterEventType.STEP_UP_FOR_RETRY


@dataclass
class Attempt:
    """One attempt of a step."""

    step: str
    number: int
    place: int
    at: datetime
    made: list[Made] = field(default_factory=list)
    checked: list[Checked] = field(default_factory=list)
    end: End | None = None


@dataclass
class Folded:
    """What a log says, from some place on."""

    attempts: dict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    started: tuple[int, datetime] | None = None
    end: End | None = None
    last: int = 0

    @property
    def open_from(self) -> int:
        """The place before which everything has ended: nothing there is read again."""
        waiting = [
            tries[0].place - 1
            for tries in self.attempts.values()
            if tries[-1].end is None or not tries[-1].end.final
        ]
        return min(waiting, default=self.last)


def fold(records: Iterable[EventLogRecord]) -> Folded:
    """Put the records of a run into steps and attempts."""
    folded = Folded()
    for record in records:
        event = record.event_log_entry.dagster_event
        folded.last = max(folded.last, record.storage_id)
        if event is not None:
            at = datetime.fromtimestamp(record.event_log_entry.timestamp, UTC)
            _add(folded, event, record.storage_id, at)
    return folded


def _add(folded: Folded, event: DagsterEvent, place: int, at: datetime) -> None:
    kind = event.event_type
    if kind is DagsterEventType.RUN_START:
        folded.started = (place, at)
    elif kind in RUN_ENDS:
        folded.end = End(place, at, kind, _run_failure(event))
    elif event.step_key is not None:
        _add_to_step(folded.attempts[event.step_key], event, place, at)


def _add_to_step(tries: list[Attempt], event: DagsterEvent, place: int, at: datetime) -> None:
    kind = event.event_type
    step = event.step_key or ""
    if kind in BEGINS or not tries:
        tries.append(Attempt(step, len(tries) + 1, place, at))
    if kind is DagsterEventType.ASSET_MATERIALIZATION:
        told = event.step_materialization_data.materialization
        # A key of several dimensions is a subclass of str, which msgspec cannot encode.
        partition = None if told.partition is None else str(told.partition)
        tries[-1].made.append(Made(place, at, told.asset_key, partition, _plain(told)))
    elif kind is DagsterEventType.ASSET_CHECK_EVALUATION:
        tries[-1].checked.append(Checked(place, at, event.asset_check_evaluation_data))
    elif kind in ENDS:
        tries[-1].end = _step_end(event, place, at)


def _step_end(event: DagsterEvent, place: int, at: datetime) -> End:
    kind = event.event_type
    if kind is DagsterEventType.STEP_SUCCESS:
        return End(place, at, kind)
    if kind is DagsterEventType.STEP_UP_FOR_RETRY:
        return End(place, at, kind, _failure(event.step_retry_data.error))
    data = event.step_failure_data
    said = data.user_failure_data
    failure = _failure(data.error)
    if said is None:
        return End(place, at, kind, failure)
    if said.description:
        # A failure that was raised to be read: its stack is no news.
        failure = Failure(said.description)
    return End(place, at, kind, failure, {name: _value(one) for name, one in said.metadata.items()})


def _failure(error: Any) -> Failure:
    """Return what went wrong: the innermost of what Dagster wraps around a user's error."""
    if error is None:
        return Failure("It failed, and Dagster does not say why.")
    while error.cause is not None:
        error = error.cause
    return Failure(error.message.strip(), "".join(error.stack))


def _run_failure(event: DagsterEvent) -> Failure | None:
    if event.event_type is DagsterEventType.RUN_SUCCESS:
        return None
    return Failure(event.message or f"{event.event_type_value}")


def _plain(materialization: AssetMaterialization) -> dict[str, Any]:
    return {name: _value(value) for name, value in materialization.metadata.items()}


def _value(value: Any) -> Any:
    """Return what a piece of metadata says."""
    for name in ("schema", "data", "md_str"):
        if hasattr(value, name):
            return getattr(value, name)
    return getattr(value, "value", value)


def planned_of(records: Sequence[EventLogRecord]) -> dict[str, list[Planned]]:
    """Return what a run is to make, by step.

    For several partitions some storages keep one record, and others one for each.
    """
    found: defaultdict[str, dict[AssetKey, list[str]]] = defaultdict(dict)
    for record in records:
        event = record.event_log_entry.dagster_event
        if event is None or event.step_key is None:
            continue
        data = event.asset_materialization_planned_data
        keys = found[event.step_key].setdefault(data.asset_key, [])
        if data.partitions_subset is not None:
            keys += data.partitions_subset.get_partition_keys()
        elif data.partition is not None:
            keys.append(data.partition)
    return {
        step: [Planned(key, tuple(map(str, partitions))) for key, partitions in planned.items()]
        for step, planned in found.items()
    }
