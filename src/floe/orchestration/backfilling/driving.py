"""Make a backfill, batch after batch. What fails stops it: later dates must not overtake."""

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
    Made,
    Undertaking,
    last_undertaking,
    undertaking,
)
from floe.orchestration.backfilling.interrupting import says_interrupted
from floe.orchestration.backfills import Reach, keys_of_range
from floe.orchestration.ranges import RANGE_END, RANGE_START
from floe.spec.orchestration import Backfill

RETRIES_TAG = "dagster/max_retries"


class NothingToResumeError(FloeError):
    """A backfill is to be taken up that was never begun."""

    def __init__(self, name: str) -> None:
        super().__init__(f"The backfill '{name}' was never begun. Run: floe backfill {name}.")


class StillRunningError(FloeError):
    """A run of a backfill is under way in Dagster."""

    def __init__(self, name: str, run_id: str) -> None:
        super().__init__(
            f"The run {run_id} of the backfill '{name}' is under way. "
            f"Wait for it and go on with: floe backfill {name} --resume; "
            f"or stop it with: floe backfill {name} --cancel."
        )


class Launcher(Protocol):
    """Something that can run a batch to its end."""

    @property
    def where(self) -> str:
        """For people: where the runs are."""
        ...

    @property
    def tags(self) -> Mapping[str, str]:
        """What it puts on runs."""
        ...

    def run(
        self,
        tags: Mapping[str, str],
        assets: list[AssetKey] | None,
        began: Callable[[str], None],
    ) -> DagsterRunStatus:
        """Run the job to its end, for some of its assets or all. Being interrupted cancels it."""
        ...

    def wait(self, run_id: str) -> DagsterRunStatus:
        """Wait for the end of a run that others began. Being interrupted cancels it."""
        ...


@dataclass(frozen=True)
class Wish:
    """What differs from floe.yaml this time."""

    start: str | None = None
    end: str | None = None
    size: int | None = None
    resume: bool = False


@dataclass(frozen=True)
class Plan:
    """A backfill that is to be made: all its keys, and those that are left in batches."""

    name: str
    id: str
    keys: tuple[str, ...]
    batches: tuple[Batch, ...]
    reach: Reach
    tags: Mapping[str, str]

    @property
    def left(self) -> int:
        return len({key for batch in self.batches for key in batch.keys})

    def tags_of(self, batch: Batch) -> dict[str, str]:
        """Return the tags of the run for a batch: that of a partition, or those of a range."""
        own = {
            **self.tags,
            NAME_TAG: self.name,
            ID_TAG: self.id,
            START_TAG: self.keys[0],
            END_TAG: self.keys[-1],
            # A run that fails stops the backfill: Dagster must not repeat it behind its back.
            RETRIES_TAG: "0",
        }
        if len(batch.keys) == 1:
            tags = self.reach.partitions.get_tags_for_partition_key(batch.keys[0])
            return {**own, **tags}
        return {**own, RANGE_START: batch.keys[0], RANGE_END: batch.keys[-1]}

    def assets_of(self, batch: Batch) -> list[AssetKey] | None:
        """Return what a run is to make of the job; None: all of it."""
        return None if batch.assets >= self.reach.assets else sorted(batch.assets)


class Watcher:
    """Hears of the progress of a backfill. This one keeps it to itself."""

    progress_seconds: float | None = None
    """How often it wants to hear of progress within a batch; None: at the end of one is enough."""

    def on_wait(self, run_id: str) -> None:
        """A run that was begun before is waited for."""

    def on_batch(self, number: int, batch: Batch, run_id: str) -> None:
        """A run was begun for a batch."""

    def on_progress(self, done: int) -> None:
        """So many keys are made."""


@dataclass(frozen=True)
class Failed:
    """A run that did not succeed, and why."""

    run_id: str
    status: str
    reason: str


@dataclass(frozen=True)
class Standing:
    """How far a backfill is."""

    keys: tuple[str, ...]
    done: int
    next: str | None
    """The first key that is not made."""
    runs: Sequence[DagsterRun]
    failed: Failed | None = None


class Drive:
    """The backfill of one name, on a Dagster instance."""

    def __init__(
        self, instance: DagsterInstance, name: str, declared: Backfill, reach: Reach
    ) -> None:
        self._instance = instance
        self._name = name
        self._declared = declared
        self._reach = reach
        self._made = Made(instance)

    def plan(self, wish: Wish) -> Plan:
        """Say what is to be made: all of the range, or what is left of the last time."""
        last = self._last() if wish.resume else None
        start, end = self._range(wish, last)
        keys = self._keys(start, end)
        made = self._made.by(last.runs) if last is not None else {}
        missing = {key: self._reach.missing(made.get(key, frozenset())) for key in keys}
        size = wish.size or self._declared.batch_size
        return Plan(
            name=self._name,
            id=last.id if last is not None else str(uuid4()),
            keys=tuple(keys),
            batches=tuple(cut(keys, missing, size, self._width(keys))),
            reach=self._reach,
            tags=self._declared.tags,
        )

    def settle(self, launcher: Launcher | None, wish: Wish, watcher: Watcher) -> None:
        """Bring runs to an end that were left under way; nobody else makes this backfill now."""
        last = last_undertaking(self._instance, self._name)
        for run in last.under_way if last is not None else ():
            if HERE_TAG in run.tags:
                self._instance.report_run_failed(run, "The command that ran it has ended.")
            elif launcher is None or not wish.resume:
                raise StillRunningError(self._name, run.run_id)
            else:
                watcher.on_wait(run.run_id)
                launcher.wait(run.run_id)

    def run(self, plan: Plan, launcher: Launcher, watcher: Watcher) -> Standing:
        """Run the batches in order, until one fails or all are made."""
        for number, batch in enumerate(plan.batches, start=1):
            with self._watched(plan, watcher):
                status = launcher.run(
                    {**plan.tags_of(batch), **launcher.tags},
                    plan.assets_of(batch),
                    partial(watcher.on_batch, number, batch),
                )
            if status is not DagsterRunStatus.SUCCESS:
                break
        return self.standing(plan)

    def standing(self, plan: Plan | None = None) -> Standing:
        """Say how far a backfill is: this one, or the last."""
        if plan is not None:
            at = undertaking(self._instance, plan.id, plan.keys[0], plan.keys[-1])
        else:
            at = self._last()
        keys = plan.keys if plan is not None else tuple(self._keys(at.start, at.end))
        made = self._made.by(at.runs)
        left = [key for key in keys if self._reach.missing(made.get(key, frozenset()))]
        return Standing(
            keys=keys,
            done=len(keys) - len(left),
            next=left[0] if left else None,
            runs=at.runs,
            failed=self._failure(at.failed) if at.runs and at.failed is not None else None,
        )

    def _last(self) -> Undertaking:
        last = last_undertaking(self._instance, self._name)
        if last is None:
            raise NothingToResumeError(self._name)
        return last

    def _range(self, wish: Wish, last: Undertaking | None) -> tuple[str, str]:
        declared = self._declared.partition_range
        start, end = (last.start, last.end) if last else (declared.start, declared.end)
        return wish.start or start, wish.end or end

    def _keys(self, start: str, end: str) -> Sequence[str]:
        with partition_loading_context(dynamic_partitions_store=self._instance):
            return keys_of_range(self._reach.partitions, start, end)

    def _width(self, keys: Sequence[str]) -> int:
        """Return how many keys a date has; without time, one of the dimension that comes first."""
        partitions = self._reach.partitions
        if not isinstance(partitions, MultiPartitionsDefinition):
            return 1
        first = partitions.partitions_defs[0]
        slow = partitions.time_window_dimension if partitions.has_time_window_dimension else first
        found = [partitions.get_partition_key_from_str(key).keys_by_dimension for key in keys]
        return len(keys) // len({key[slow.name] for key in found})

    @contextmanager
    def _watched(self, plan: Plan, watcher: Watcher) -> Iterator[None]:
        """Tell of progress while a run is under way, and once more at its end."""
        over = threading.Event()

        def look() -> None:
            while not over.wait(watcher.progress_seconds):
                watcher.on_progress(self.standing(plan).done)

        looking = threading.Thread(target=look, daemon=True)
        if watcher.progress_seconds is not None:
            looking.start()
        try:
            yield
        finally:
            over.set()
            if looking.is_alive():
                looking.join()
            watcher.on_progress(self.standing(plan).done)

    def _failure(self, run: DagsterRun) -> Failed:
        kind = DagsterEventType.STEP_FAILURE
        failures: list[Any] = [
            entry.dagster_event for entry in self._instance.all_logs(run.run_id, of_type=kind)
        ]
        # Of a step that was interrupted there is nothing to say.
        told = [event for event in failures if not says_interrupted(event)]
        reasons = [f"{event.step_key}: {_reason(event)}" for event in told]
        return Failed(run.run_id, run.status.value, "\n".join(reasons))


def _reason(event: Any) -> str:
    """Return what a step failed of: the words of the first cause, and for which partition."""
    error = event.step_failure_data.error
    notes = [line for line in str(error.message).splitlines() if line.startswith("It failed for")]
    while error.cause is not None:
        error = error.cause
    said = str(error.message).strip()
    return " ".join([said, *(note for note in notes if note not in said)])
