"""The event log of a Dagster run, folded into steps and attempts. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckSeverity,
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    DagsterEventType,
    EventLogRecord,
    TableSchema,
)

from floe.catalog.schemas import Column
from floe.orchestration.metadata import AWAITS, ROWS, SCHEMA, SIZE, SQL, VERSION
from floe.orchestration.observing.reports import Failure, Output, Verdict
from floe.orchestration.selection import name_of

STEP_STARTS = frozenset({DagsterEventType.STEP_START, DagsterEventType.STEP_RESTARTED})
STEP_ENDS = frozenset(
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
OBSERVED_TYPES = frozenset(
    {
        *STEP_STARTS,
        *STEP_ENDS,
        *RUN_ENDS,
        DagsterEventType.RUN_START,
        DagsterEventType.ASSET_MATERIALIZATION,
        DagsterEventType.ASSET_CHECK_EVALUATION,
    }
)
"""The event types that are read; the rest of a log is for people."""


@dataclass(frozen=True)
class PlannedAsset:
    """An asset that a run is going to make, as Dagster planned it."""

    key: AssetKey
    partitions: tuple[str, ...] = ()

    @property
    def is_range(self) -> bool:
        """Whether the run is for several partitions at once."""
        return len(self.partitions) > 1


@dataclass(frozen=True)
class Materialization:
    """An asset that a step has made."""

    position: int
    at: datetime
    key: AssetKey
    partition: str | None
    metadata: Mapping[str, Any]

    @property
    def version(self) -> str:
        """The tag of the version; empty if the asset does not report one."""
        return str(self.metadata.get(VERSION) or "")

    @property
    def output(self) -> Output:
        """The version that was written."""
        return Output(
            name_of(self.key),
            self.version,
            _count(self.metadata.get(ROWS)),
            _count(self.metadata.get(SIZE)),
            _columns(self.metadata.get(SCHEMA)),
        )

    @property
    def sql(self) -> str | None:
        """The SQL that made it, without the Markdown fence."""
        sql = self.metadata.get(SQL)
        if not isinstance(sql, str) or not sql:
            return None
        return sql.removeprefix("```sql\n").removesuffix("\n```")


@dataclass(frozen=True)
class CheckEvent:
    """The evaluation of a check."""

    position: int
    at: datetime
    evaluation: AssetCheckEvaluation

    @property
    def verdict(self) -> Verdict:
        return Verdict(
            self.evaluation.check_name,
            self.evaluation.passed,
            self.evaluation.severity is AssetCheckSeverity.ERROR,
            self.evaluation.description or "",
        )


@dataclass(frozen=True)
class End:
    """How an attempt or a run ended."""

    position: int
    at: datetime
    type: DagsterEventType
    failure: Failure | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata that the step attached to its failure."""

    @property
    def is_final(self) -> bool:
        """Whether no other attempt follows."""
        return self.type is not DagsterEventType.STEP_UP_FOR_RETRY


@dataclass
class Attempt:
    """One attempt of a step."""

    step: str
    index: int
    """Counts from 1."""
    position: int
    at: datetime
    materializations: list[Materialization] = field(default_factory=list)
    checks: list[CheckEvent] = field(default_factory=list)
    end: End | None = None

    def version_before(self, check: CheckEvent) -> str:
        """Return the unpartitioned version that this attempt made before a check of it.

        In a run for a partition, Dagster looks for that partition only and does not find it.
        """
        versions = [
            materialization.version
            for materialization in self.materializations
            if materialization.key == check.evaluation.asset_key
            and materialization.position < check.position
            and materialization.partition is None
        ]
        return versions[-1] if versions else ""


@dataclass
class FoldedLog:
    """The steps of a run, read from some position of its log onwards."""

    attempts: dict[str, list[Attempt]] = field(default_factory=lambda: defaultdict(list))
    started: tuple[int, datetime] | None = None
    end: End | None = None
    last: int = 0

    @property
    def open_from(self) -> int:
        """The position before which everything has ended and need not be read again."""
        unfinished = [
            attempts[0].position - 1
            for attempts in self.attempts.values()
            if attempts[-1].end is None or not attempts[-1].end.is_final
        ]
        return min(unfinished, default=self.last)


def fold_records(records: Iterable[EventLogRecord]) -> FoldedLog:
    """Group the records of a run by step and attempt."""
    folded = FoldedLog()
    for record in records:
        event = record.event_log_entry.dagster_event
        folded.last = max(folded.last, record.storage_id)
        if event is not None:
            at = datetime.fromtimestamp(record.event_log_entry.timestamp, UTC)
            _add(folded, event, record.storage_id, at)
    return folded


def _add(folded: FoldedLog, event: DagsterEvent, position: int, at: datetime) -> None:
    kind = event.event_type
    if kind is DagsterEventType.RUN_START:
        folded.started = (position, at)
    elif kind in RUN_ENDS:
        folded.end = End(position, at, kind, _run_failure(event))
    elif event.step_key is not None:
        _add_to_step(folded.attempts[event.step_key], event, position, at)


def _add_to_step(attempts: list[Attempt], event: DagsterEvent, position: int, at: datetime) -> None:
    kind = event.event_type
    step = event.step_key or ""
    if kind in STEP_STARTS or not attempts:
        attempts.append(Attempt(step, len(attempts) + 1, position, at))
    attempt = attempts[-1]
    if kind is DagsterEventType.ASSET_MATERIALIZATION:
        logged = event.step_materialization_data.materialization
        # A key of several dimensions is a subclass of str, which msgspec cannot encode.
        partition = None if logged.partition is None else str(logged.partition)
        attempt.materializations.append(
            Materialization(position, at, logged.asset_key, partition, _plain_metadata(logged))
        )
    elif kind is DagsterEventType.ASSET_CHECK_EVALUATION:
        attempt.checks.append(CheckEvent(position, at, event.asset_check_evaluation_data))
    elif kind in STEP_ENDS:
        attempt.end = _step_end(event, position, at)


def _step_end(event: DagsterEvent, position: int, at: datetime) -> End:
    kind = event.event_type
    if kind is DagsterEventType.STEP_SUCCESS:
        return End(position, at, kind)
    if kind is DagsterEventType.STEP_UP_FOR_RETRY:
        return End(position, at, kind, _failure(event.step_retry_data.error))
    data = event.step_failure_data
    user_data = data.user_failure_data
    failure = _failure(data.error)
    if user_data is None:
        return End(position, at, kind, failure)
    if user_data.description:
        # The step raised dagster.Failure with a message: its stack adds nothing.
        failure = Failure(user_data.description)
    metadata = {name: plain_value(value) for name, value in user_data.metadata.items()}
    return End(position, at, kind, failure, metadata)


def _failure(error: Any) -> Failure:
    """Return the innermost cause: Dagster wraps its own errors around a user's error."""
    if error is None:
        return Failure("The step failed; Dagster gives no reason.")
    while error.cause is not None:
        error = error.cause
    return Failure(error.message.strip(), "".join(error.stack))


def _run_failure(event: DagsterEvent) -> Failure | None:
    if event.event_type is DagsterEventType.RUN_SUCCESS:
        return None
    return Failure(event.message or f"{event.event_type_value}")


def _plain_metadata(materialization: AssetMaterialization) -> dict[str, Any]:
    return {name: plain_value(value) for name, value in materialization.metadata.items()}


def plain_value(value: Any) -> Any:
    """Return the content of a metadata value."""
    for name in ("schema", "data", "md_str"):
        if hasattr(value, name):
            return getattr(value, name)
    return getattr(value, "value", value)


def parse_time(value: Any) -> datetime | None:
    """Parse an ISO timestamp, or return None."""
    if not isinstance(value, str):
        return None
    return datetime.fromisoformat(value).astimezone(UTC)


def judge_version(
    materialization: Materialization, checks: Sequence[CheckEvent], end: End | None
) -> tuple[int, str] | None:
    """Decide whether a version that others can already read is rejected.

    Return the log position where that was known and the reason, which is empty for a good
    version; None while tests are still to come. A version is also rejected if one of its tests
    never ran, because nobody knows whether the version is good.
    """
    awaited = set(materialization.metadata.get(AWAITS) or ())
    done = [
        check
        for check in checks
        if check.evaluation.asset_key == materialization.key
        and check.evaluation.check_name in awaited
    ]
    failed = [check for check in done if not check.verdict.passed and check.verdict.strict]
    missing = sorted(awaited - {check.evaluation.check_name for check in done})
    positions = [materialization.position, *(check.position for check in done)]
    if missing:
        if end is None:
            return None
        positions.append(end.position)
    reasons = [f"{check.evaluation.check_name} failed" for check in failed]
    reasons += [f"{name} was not run" for name in missing]
    return max(positions), "; ".join(reasons)


def planned_assets(records: Sequence[EventLogRecord]) -> dict[str, list[PlannedAsset]]:
    """Return the assets that a run is going to make, by step.

    For several partitions, some storages keep one record, and others one for each.
    """
    by_step: defaultdict[str, dict[AssetKey, list[str]]] = defaultdict(dict)
    for record in records:
        event = record.event_log_entry.dagster_event
        if event is None or event.step_key is None:
            continue
        data = event.asset_materialization_planned_data
        keys = by_step[event.step_key].setdefault(data.asset_key, [])
        if data.partitions_subset is not None:
            keys += data.partitions_subset.get_partition_keys()
        elif data.partition is not None:
            keys.append(data.partition)
    return {
        step: [PlannedAsset(key, tuple(map(str, keys))) for key, keys in assets.items()]
        for step, assets in by_step.items()
    }


def _columns(schema: Any) -> tuple[Column, ...]:
    if not isinstance(schema, TableSchema):
        return ()
    return tuple(
        Column(column.name, column.type, nullable=column.constraints.nullable)
        for column in schema.columns
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
