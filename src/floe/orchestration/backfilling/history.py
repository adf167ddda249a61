"""What became of a backfill so far, as the runs and materialisations in Dagster tell it."""

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
"""On every run: which time it is that this backfill is made."""
START_TAG, END_TAG = "floe/backfill_start", "floe/backfill_end"
"""On every run: the range of the whole, which may differ from that of floe.yaml."""
HERE_TAG = "floe/in_command"
"""On runs that live and die with the command that made them."""
PARTITION_TAG = "dagster/partition"

UNDER_WAY = (
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True)
class Undertaking:
    """One time that a backfill was made, or begun."""

    id: str
    start: str
    end: str
    runs: Sequence[DagsterRun]
    """The oldest first."""

    @property
    def under_way(self) -> Sequence[DagsterRun]:
        return [run for run in self.runs if run.status in UNDER_WAY]

    @property
    def failed(self) -> DagsterRun | None:
        """The newest run, if it did not succeed."""
        last = self.runs[-1]
        return None if last.status is DagsterRunStatus.SUCCESS else last


def last_undertaking(instance: DagsterInstance, name: str) -> Undertaking | None:
    """Return the newest time that a backfill was made; None, when it never was."""
    newest = instance.get_runs(RunsFilter(tags={NAME_TAG: name}), limit=1)
    if not newest:
        return None
    tags = newest[0].tags
    return undertaking(instance, tags[ID_TAG], tags[START_TAG], tags[END_TAG])


def undertaking(instance: DagsterInstance, id_: str, start: str, end: str) -> Undertaking:
    """Return an undertaking with the runs that it has by now."""
    runs = instance.get_runs(RunsFilter(tags={ID_TAG: id_}))
    return Undertaking(id_, start, end, tuple(reversed(runs)))


def range_of_run(run: DagsterRun) -> tuple[str, str]:
    """Return the first and the last key that a run was to make."""
    if PARTITION_TAG in run.tags:
        return run.tags[PARTITION_TAG], run.tags[PARTITION_TAG]
    return run.tags[RANGE_START], run.tags[RANGE_END]


class Made:
    """Which assets were made for which keys, read from the logs of runs.

    The log of a run that has ended is read once.
    """

    def __init__(self, instance: DagsterInstance) -> None:
        self._instance = instance
        self._ended: dict[str, Mapping[str, Assets]] = {}

    def by(self, runs: Iterable[DagsterRun]) -> Mapping[str, Assets]:
        """Return the assets that runs have made, by key."""
        found: defaultdict[str, set[AssetKey]] = defaultdict(set)
        for run in runs:
            for key, assets in self._of(run).items():
                found[key] |= assets
        return {key: frozenset(assets) for key, assets in found.items()}

    def _of(self, run: DagsterRun) -> Mapping[str, Assets]:
        if run.run_id in self._ended:
            return self._ended[run.run_id]
        found = made_in_run(self._instance, run.run_id)
        if run.status not in UNDER_WAY:
            self._ended[run.run_id] = found
        return found
