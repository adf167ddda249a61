"""Earlier executions of a backfill, from the runs and materializations in Dagster."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dagster import (
    AssetKey,
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    RunsFilter,
)

from floe.orchestration.backfilling.batches import Assets
from floe.orchestration.ranges import RANGE_END, RANGE_START, made_in_run

NAME_TAG = "floe/backfill"
"""On every run of a backfill: its name."""
ID_TAG = "floe/backfill_id"
"""On every run: the id of the execution."""
START_TAG, END_TAG = "floe/backfill_start", "floe/backfill_end"
"""On every run: the range of the execution, which may differ from floe.yaml."""
HERE_TAG = "floe/in_command"
"""On runs in the process of the command: they end with it."""
PARTITION_TAG = "dagster/partition"

UNDER_WAY = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True)
class BackfillExecution:
    """One execution of a backfill, finished or not."""

    id: str
    start: str
    end: str
    runs: Sequence[DagsterRun]
    """Oldest first."""

    @property
    def under_way(self) -> Sequence[DagsterRun]:
        return [run for run in self.runs if run.status in UNDER_WAY]

    @property
    def failed(self) -> DagsterRun | None:
        """The newest run, if it did not succeed."""
        last = self.runs[-1]
        return None if last.status is DagsterRunStatus.SUCCESS else last


def last_execution(instance: DagsterInstance, name: str) -> BackfillExecution | None:
    """Return the newest execution of a backfill, or None."""
    newest = instance.get_runs(RunsFilter(tags={NAME_TAG: name}), limit=1)
    if not newest:
        return None
    tags = newest[0].tags
    return load_execution(instance, tags[ID_TAG], tags[START_TAG], tags[END_TAG])


def load_execution(instance: DagsterInstance, id_: str, start: str, end: str) -> BackfillExecution:
    """Return an execution with its current runs."""
    runs = instance.get_runs(RunsFilter(tags={ID_TAG: id_}))
    return BackfillExecution(id_, start, end, tuple(reversed(runs)))


def range_of_run(run: DagsterRun) -> tuple[str, str]:
    """Return the first and the last key of a run."""
    if PARTITION_TAG in run.tags:
        return run.tags[PARTITION_TAG], run.tags[PARTITION_TAG]
    return run.tags[RANGE_START], run.tags[RANGE_END]


class MaterializedKeys:
    """The materialized assets by key, read from the logs of runs.

    The log of an ended run is read once.
    """

    def __init__(self, instance: DagsterInstance) -> None:
        self._instance = instance
        self._ended: dict[str, Mapping[str, Assets]] = {}

    def by(self, runs: Iterable[DagsterRun]) -> Mapping[str, Assets]:
        """Return the assets that runs materialized, by key."""
        by_key: defaultdict[str, set[AssetKey]] = defaultdict(set)
        for run in runs:
            for key, assets in self._of(run).items():
                by_key[key] |= assets
        return {key: frozenset(assets) for key, assets in by_key.items()}

    def _of(self, run: DagsterRun) -> Mapping[str, Assets]:
        if run.run_id in self._ended:
            return self._ended[run.run_id]
        by_key = made_in_run(self._instance, run.run_id)
        if run.status not in UNDER_WAY:
            self._ended[run.run_id] = by_key
        return by_key
