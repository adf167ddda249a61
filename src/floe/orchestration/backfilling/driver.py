"""Run a backfill batch by batch. A failure stops it, so that dates stay in order."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

from dagster import (
    AssetKey,
    DagsterEventType,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    MultiPartitionsDefinition,
    partition_loading_context,
)

from floe.errors import FloeError
from floe.orchestration.backfilling.batches import Batch, cut
from floe.orchestration.backfilling.history import (
    END_TAG,
    HERE_TAG,
    ID_TAG,
    NAME_TAG,
    START_TAG,
    BackfillExecution,
    MaterializedKeys,
    last_execution,
    load_execution,
)
from floe.orchestration.backfilling.interruptions import is_interruption
from floe.orchestration.backfills import BackfillScope, keys_of_range
from floe.orchestration.ranges import RANGE_END, RANGE_START
from floe.spec.orchestration import Backfill

RETRIES_TAG = "dagster/max_retries"


class NothingToResumeError(FloeError):
    """The backfill to resume was never started."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The backfill '{name}' was never started. Run: floe backfill {name}.")


class StillRunningError(FloeError):
    """A run of the backfill is in progress in Dagster."""

    def __init__(self, name: str, run_id: str) -> None:
        super().__init__(
            f"The run {run_id} of the backfill '{name}' is in progress. "
            f"Wait for it and continue with: floe backfill {name} --resume; "
            f"or stop it with: floe backfill {name} --cancel."
        )


class Launcher(Protocol):
    """Runs a batch to its end."""

    @property
    def where(self) -> str:
        """Where the runs are, for messages."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """The tags that it adds to runs."""
        ...

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Run the job for some or all of its assets; an interrupt cancels it."""
        ...

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Wait for the end of a run that was started before; an interrupt cancels it."""
        ...


@dataclass(frozen=True)
class Overrides:
    """Options of the command that override floe.yaml."""

    start: str | None = None
    end: str | None = None
    size: int | None = None
    resume: bool = False


@dataclass(frozen=True)
class Plan:
    """A planned backfill: all its keys, and the remaining ones in batches."""

    name: str
    id: str
    keys: tuple[str, ...]
    batches: tuple[Batch, ...]
    scope: BackfillScope
    tags: Mapping[str, str]

    @property
    def left(self) -> int:
        return len({key for batch in self.batches for key in batch.keys})

    def tags_of(self, batch: Batch) -> dict[str, str]:
        """Return the tags of a batch's run: of one partition, or of a range."""
        own = {
            **self.tags,
            NAME_TAG: self.name,
            ID_TAG: self.id,
            START_TAG: self.keys[0],
            END_TAG: self.keys[-1],
            # A failed run stops the backfill, so Dagster must not retry it.
            RETRIES_TAG: "0",
        }
        if len(batch.keys) == 1:
            tags = self.scope.partitions.get_tags_for_partition_key(batch.keys[0])
            return {**own, **tags}
        return {**own, RANGE_START: batch.keys[0], RANGE_END: batch.keys[-1]}

    def assets_of(self, batch: Batch) -> list[AssetKey] | None:
        """Return the assets of a batch's run; None for all assets of the job."""
        return None if batch.assets >= self.scope.assets else sorted(batch.assets)


class Watcher:
    """Receives the progress of a backfill. The base class ignores it."""

    progress_seconds: float | None = None
    """How often progress is reported within a batch; None: only at its end."""

    def on_wait(self, run_id: str) -> None:
        """The backfill waits for a run that was started before."""

    def on_batch(self, index: int, batch: Batch, run_id: str) -> None:
        """The run of a batch was started."""

    def on_progress(self, done: int) -> None:
        """This many keys are done."""


@dataclass(frozen=True)
class Failed:
    """A run that did not succeed, and why."""

    run_id: str
    status: str
    reason: str


@dataclass(frozen=True)
class BackfillProgress:
    """The progress of a backfill."""

    keys: tuple[str, ...]
    done: int
    next: str | None
    """The first key that is not done."""
    runs: Sequence[DagsterRun]
    failed: Failed | None = None


class BackfillDriver:
    """Plans and runs one backfill on a Dagster instance."""

    def __init__(
        self, instance: DagsterInstance, name: str, declared: Backfill, scope: BackfillScope
    ) -> None:
        self._instance = instance
        self._name = name
        self._declared = declared
        self._scope = scope
        self._materialized = MaterializedKeys(instance)

    def plan(self, overrides: Overrides) -> Plan:
        """Plan the whole range, or with `resume` what is left of the last execution."""
        last = self._last() if overrides.resume else None
        start, end = self._range(overrides, last)
        keys = self._keys(start, end)
        done_by_key = self._materialized.by(last.runs) if last is not None else {}
        missing = {key: self._scope.missing(done_by_key.get(key, frozenset())) for key in keys}
        size = overrides.size or self._declared.batch_size
        return Plan(
            name=self._name,
            id=last.id if last is not None else str(uuid4()),
            keys=tuple(keys),
            batches=tuple(cut(keys, missing, size, self._width(keys))),
            scope=self._scope,
            tags=self._declared.tags,
        )

    def finish_open_runs(
        self, launcher: Launcher | None, overrides: Overrides, watcher: Watcher
    ) -> None:
        """Finish runs that are still open; the lock excludes other commands."""
        last = last_execution(self._instance, self._name)
        for run in last.under_way if last is not None else ():
            if HERE_TAG in run.tags:
                self._instance.report_run_failed(run, "The command that ran it has ended.")
            elif launcher is None or not overrides.resume:
                raise StillRunningError(self._name, run.run_id)
            else:
                watcher.on_wait(run.run_id)
                launcher.wait(run.run_id)

    def run(self, plan: Plan, launcher: Launcher, watcher: Watcher) -> BackfillProgress:
        """Run the batches in order until one fails or all are done."""
        for index, batch in enumerate(plan.batches, start=1):
            with self._report_progress(plan, watcher):
                status = launcher.run(
                    {**plan.tags_of(batch), **launcher.tags},
                    plan.assets_of(batch),
                    partial(watcher.on_batch, index, batch),
                )
            if status is not DagsterRunStatus.SUCCESS:
                break
        return self.progress(plan)

    def progress(self, plan: Plan | None = None) -> BackfillProgress:
        """Return the progress of a plan, else of the last execution."""
        if plan is not None:
            execution = load_execution(self._instance, plan.id, plan.keys[0], plan.keys[-1])
        else:
            execution = self._last()
        keys = plan.keys if plan is not None else tuple(self._keys(execution.start, execution.end))
        done_by_key = self._materialized.by(execution.runs)
        left = [key for key in keys if self._scope.missing(done_by_key.get(key, frozenset()))]
        return BackfillProgress(
            keys=keys,
            done=len(keys) - len(left),
            next=left[0] if left else None,
            runs=execution.runs,
            failed=self._failure(execution.failed)
            if execution.runs and execution.failed is not None
            else None,
        )

    def _last(self) -> BackfillExecution:
        last = last_execution(self._instance, self._name)
        if last is None:
            raise NothingToResumeError(self._name)
        return last

    def _range(self, overrides: Overrides, last: BackfillExecution | None) -> tuple[str, str]:
        declared = self._declared.partition_range
        start, end = (last.start, last.end) if last else (declared.start, declared.end)
        return overrides.start or start, overrides.end or end

    def _keys(self, start: str, end: str) -> Sequence[str]:
        with partition_loading_context(dynamic_partitions_store=self._instance):
            return keys_of_range(self._scope.partitions, start, end)

    def _width(self, keys: Sequence[str]) -> int:
        """Return the number of keys per date, else per key of the first dimension."""
        partitions = self._scope.partitions
        if not isinstance(partitions, MultiPartitionsDefinition):
            return 1
        first = partitions.partitions_defs[0]
        slow = partitions.time_window_dimension if partitions.has_time_window_dimension else first
        dimensions = [partitions.get_partition_key_from_str(key).keys_by_dimension for key in keys]
        return len(keys) // len({key[slow.name] for key in dimensions})

    @contextmanager
    def _report_progress(self, plan: Plan, watcher: Watcher) -> Iterator[None]:
        """Report progress during a run, and once at its end."""
        ended = threading.Event()

        def report() -> None:
            while not ended.wait(watcher.progress_seconds):
                watcher.on_progress(self.progress(plan).done)

        reporter = threading.Thread(target=report, daemon=True)
        if watcher.progress_seconds is not None:
            reporter.start()
        try:
            yield
        finally:
            ended.set()
            if reporter.is_alive():
                reporter.join()
            watcher.on_progress(self.progress(plan).done)

    def _failure(self, run: DagsterRun) -> Failed:
        kind = DagsterEventType.STEP_FAILURE
        failures: list[Any] = [
            entry.dagster_event for entry in self._instance.all_logs(run.run_id, of_type=kind)
        ]
        # Interrupted steps are no failures.
        relevant = [event for event in failures if not is_interruption(event)]
        reasons = [f"{event.step_key}: {_reason(event)}" for event in relevant]
        return Failed(run.run_id, run.status.value, "\n".join(reasons))


def _reason(event: Any) -> str:
    """Return the message of a step's root cause, with its partition."""
    error = event.step_failure_data.error
    notes = [line for line in str(error.message).splitlines() if line.startswith("It failed for")]
    while error.cause is not None:
        error = error.cause
    message = str(error.message).strip()
    return " ".join([message, *(note for note in notes if note not in message)])
