"""From the folded log of a Dagster run to what is told of it. Pure.

What is told follows from the log alone, down to the last letter: whoever reads it twice tells the
same, and the catalog takes it once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from dagster import AssetKey, DagsterEventType, DagsterRun

from floe.orchestration.metadata import (
    ENDED,
    FAILED,
    PRODUCER_CHECK,
    READS,
    RUN,
    STARTED,
    VERSIONS,
)
from floe.orchestration.observing.knowledge import Knowledge, dataset_of
from floe.orchestration.observing.logs import Attempt, Checked, End, Folded, Made, Planned
from floe.orchestration.observing.reports import (
    Failure,
    Kind,
    Observed,
    Read,
    Report,
    Written,
)
from floe.orchestration.observing.saying import (
    judge,
    made_before,
    sql_of,
    time_of,
    verdict_of,
    version_made,
)
from floe.spec.identity import (
    BUSINESS_DATE_TAG,
    ProcessId,
    dagster_job,
    dbt_process,
    floe_process,
    run_id,
)

PARTITION_TAG = "dagster/partition"
JOB, ASSET, MODEL, CHECK = "JOB", "ASSET", "MODEL", "CHECK"
UNIQUE_ID = "dbt/unique_id"
VersionOf = Callable[[Checked], str]


@dataclass(frozen=True)
class RunLog:
    """A Dagster run, and what its log says from some place on."""

    run: DagsterRun
    created_at: datetime
    started_at: datetime | None
    folded: Folded
    planned: Mapping[str, Sequence[Planned]] = field(default_factory=dict)
    version_of: VersionOf = lambda _: ""
    """The version that a check was made on."""


def translate(log: RunLog, knowledge: Knowledge) -> list[Report]:
    """Return what is to be told of a run, in the order in which it was known."""
    told = list(_Translation(log, knowledge).reports())
    return sorted(told, key=lambda report: report.place)


class _Translation:
    """One log on its way to reports."""

    def __init__(self, log: RunLog, knowledge: Knowledge) -> None:
        self._log, self._known = log, knowledge
        self._run, self._folded = log.run, log.folded
        self._default_date = _run_date(log, knowledge.zone)

    def reports(self) -> Iterator[Report]:
        yield from self._job()
        for step, tries in self._folded.attempts.items():
            for attempt in tries:
                yield from self._attempt(step, attempt)

    def _job(self) -> Iterator[Report]:
        started, end = self._folded.started, self._folded.end
        began = started[1] if started else (self._log.started_at or self._log.created_at)
        run = Observed(
            self._run.run_id,
            dagster_job(self._known.project, self._run.job_name),
            self._run.run_id,
            began,
            self._default_date,
            JOB,
            self._run.tags.get(PARTITION_TAG),
        )
        if started is not None:
            yield Report(started[0], "START", started[1], run)
        if end is not None:
            yield Report(end.place, _run_kind(end), end.at, run, failure=end.failure)

    def _attempt(self, step: str, attempt: Attempt) -> Iterator[Report]:
        planned = self._log.planned.get(step, ())
        keys = {one.key for one in planned} | {one.key for one in attempt.made}
        if any(RUN in one.metadata for one in attempt.made) or keys & self._known.processes:
            # A process: its runner has told of it, and of its checks.
            return
        end = attempt.end or self._folded.end
        if keys & self._known.models.keys():
            yield from self._models(step, attempt, end)
        elif keys:
            yield from self._asset(step, attempt, planned, end)
        for checked in attempt.checked:
            if checked.evaluation.check_name != PRODUCER_CHECK:
                yield from self._check(step, attempt, checked)

    # --- Python assets

    def _asset(
        self, step: str, attempt: Attempt, planned: Sequence[Planned], end: End | None
    ) -> Iterator[Report]:
        keys = sorted({one.key for one in planned} | {one.key for one in attempt.made})
        ranged = next((one for one in planned if one.ranged), None)
        if ranged is not None:
            yield from self._range(step, attempt, keys, ranged.partitions, end)
            return
        partitions = [one.partitions[0] for one in planned if one.partitions]
        partitions += [one.partition for one in attempt.made if one.partition is not None]
        partition = partitions[0] if partitions else None
        run = self._step_run(step, attempt, keys, partition, attempt.at)
        yield self._start(run, attempt.place, keys)
        if end is not None:
            yield self._end(run, end, keys, attempt.made)

    def _range(
        self,
        step: str,
        attempt: Attempt,
        keys: Sequence[AssetKey],
        partitions: Sequence[str],
        end: End | None,
    ) -> Iterator[Report]:
        """One run for each partition: they are made in order, each begins where one ended."""
        began, made = attempt.at, _by_partition(attempt.made)
        for partition, group in made.items():
            complete = len({one.key for one in group}) == len(keys)
            if not complete and end is None:
                return
            run = self._step_run(step, attempt, keys, partition, began)
            last = group[-1]
            yield self._start(run, last.place, keys)
            done = End(last.place, last.at, DagsterEventType.STEP_SUCCESS)
            yield self._end(run, done, keys, group)
            began = last.at
        left = [one for one in partitions if one not in made]
        if end is not None and left and end.failure is not None:
            run = self._step_run(step, attempt, keys, left[0], began)
            yield self._start(run, end.place, keys)
            yield self._end(run, end, keys, ())

    def _step_run(
        self,
        step: str,
        attempt: Attempt,
        keys: Sequence[AssetKey],
        partition: str | None,
        began: datetime,
    ) -> Observed:
        return Observed(
            self._id(step, partition, attempt),
            self._known.process_of(keys, step),
            self._run.run_id,
            began,
            self._known.date_of(keys[0], partition) or self._default_date,
            ASSET,
            partition,
            step,
            attempt.number,
        )

    def _start(self, run: Observed, place: int, keys: Sequence[AssetKey]) -> Report:
        written = [] if self._is_whole(keys) else [Written(dataset_of(key)) for key in keys]
        return Report(place, "START", run.started_at, run, written=written)

    def _end(
        self, run: Observed, end: End, keys: Sequence[AssetKey], made: Sequence[Made]
    ) -> Report:
        kind = _step_kind(end)
        written = [one for made_one in made for one in self._written(made_one)]
        if kind != "COMPLETE":
            # What an attempt that failed had made is there, and is told of without a version.
            written = [] if self._is_whole(keys) else [Written(dataset_of(key)) for key in keys]
        return Report(
            end.place,
            kind,
            end.at,
            run,
            self._reads(keys, made),
            written,
            end.failure,
            sql_of(made),
        )

    def _is_whole(self, keys: Sequence[AssetKey]) -> bool:
        return any(key in self._known.whole for key in keys)

    def _reads(self, keys: Sequence[AssetKey], made: Sequence[Made]) -> list[Read]:
        """What was read, with its versions where they are known, and else as it is declared."""
        found = dict.fromkeys(
            Read(str(one["dataset"]), str(one["version"]))
            for each in made
            for one in each.metadata.get(READS) or ()
        )
        told = {one.dataset for one in found}
        declared = dict.fromkeys(
            name for key in keys for name in self._known.reads.get(key, ()) if name not in told
        )
        own = {dataset_of(key) for key in keys}
        return [*found, *(Read(name) for name in declared if name not in own)]

    def _written(self, made: Made) -> list[Written]:
        if VERSIONS in made.metadata:
            listed = made.metadata[VERSIONS]
            return [Written(name, str(tag)) for name, tag in sorted(listed.items())]
        return [version_made(made)]

    # --- models of dbt

    def _models(self, step: str, attempt: Attempt, end: End | None) -> Iterator[Report]:
        for made in attempt.made:
            if made.key in self._known.models:
                yield from self._model(step, attempt, made, end)
        if end is not None:
            for failed in end.metadata.get(FAILED) or ():
                yield from self._failed_model(step, attempt, failed, end)

    def _model(self, step: str, attempt: Attempt, made: Made, end: End | None) -> Iterator[Report]:
        began = time_of(made.metadata.get(STARTED)) or made.at
        run = self._model_run(step, attempt, made.key, made.partition, began)
        dataset = dataset_of(made.key)
        yield Report(made.place, "START", began, run, written=[Written(dataset)])
        judged = judge(made, attempt.checked, end)
        if judged is None:
            return
        place, reason = judged
        yield Report(
            place,
            "COMPLETE",
            time_of(made.metadata.get(ENDED)) or made.at,
            run,
            self._reads([made.key], [made]),
            [replace(version_made(made), rejected=reason)],
            sql=sql_of([made]),
        )

    def _failed_model(
        self, step: str, attempt: Attempt, failed: Mapping[str, Any], end: End
    ) -> Iterator[Report]:
        kind, project, name = str(failed[UNIQUE_ID]).split(".", 2)
        process = dbt_process(project, name)
        key = next((key for key, one in self._known.models.items() if one == process), None)
        if kind == "test" or key is None:
            # A test has left a verdict.
            return
        began = time_of(failed.get(STARTED)) or attempt.at
        run = self._model_run(step, attempt, key, self._partition_of(step, key), began)
        written = [Written(dataset_of(key))]
        yield Report(end.place, "START", began, run, written=written)
        yield Report(
            end.place,
            "FAIL",
            time_of(failed.get(ENDED)) or end.at,
            run,
            self._reads([key], ()),
            written,
            Failure(str(failed.get("message") or "dbt does not say why.")),
            failed.get("sql") or None,
        )

    def _partition_of(self, step: str, key: AssetKey) -> str | None:
        planned = [one for one in self._log.planned.get(step, ()) if one.key == key]
        return planned[0].partitions[0] if planned and planned[0].partitions else None

    def _model_run(
        self, step: str, attempt: Attempt, key: AssetKey, partition: str | None, began: datetime
    ) -> Observed:
        return Observed(
            self._id(f"{step}/{dataset_of(key)}", partition, attempt),
            self._known.models[key],
            self._run.run_id,
            began,
            self._known.date_of(key, partition) or self._default_date,
            MODEL,
            partition,
            step,
            attempt.number,
        )

    # --- checks

    def _check(self, step: str, attempt: Attempt, checked: Checked) -> Iterator[Report]:
        found = checked.evaluation
        key, name, partition = found.asset_key, found.check_name, found.partition
        dataset = dataset_of(key)
        alone = not attempt.made and len(attempt.checked) == 1
        metadata = {of: getattr(one, "value", one) for of, one in found.metadata.items()}
        began = time_of(metadata.get(STARTED)) or (attempt.at if alone else checked.at)
        run = Observed(
            self._id(f"{step}/{dataset}:{name}", partition, attempt),
            self._check_process(key, name),
            self._run.run_id,
            began,
            self._known.date_of(key, partition) or self._default_date,
            CHECK,
            partition,
            step,
            attempt.number,
        )
        verdict = verdict_of(checked)
        broken = not verdict.passed and verdict.strict
        message = verdict.message or f"The check {name} failed on {dataset}."
        version = made_before(checked, attempt) or self._log.version_of(checked)
        yield Report(checked.place, "START", began, run)
        yield Report(
            checked.place,
            "FAIL" if broken else "COMPLETE",
            time_of(metadata.get(ENDED)) or checked.at,
            run,
            [Read(dataset, version, [verdict])],
            failure=Failure(message) if broken else None,
        )

    def _check_process(self, key: AssetKey, name: str) -> ProcessId:
        test = self._known.tests.get((key, name))
        return test or floe_process(self._known.project, f"{dataset_of(key)}/{name}")

    def _id(self, step: str, partition: str | None, attempt: Attempt) -> str:
        return str(run_id(self._run.run_id, step, partition, attempt.number))


def _by_partition(made: Sequence[Made]) -> dict[str | None, list[Made]]:
    found: dict[str | None, list[Made]] = {}
    for one in made:
        found.setdefault(one.partition, []).append(one)
    return found


def _step_kind(end: End) -> Kind:
    if end.type in (DagsterEventType.STEP_SUCCESS, DagsterEventType.RUN_SUCCESS):
        return "COMPLETE"
    return "ABORT" if end.type is DagsterEventType.RUN_CANCELED else "FAIL"


_run_kind = _step_kind


def _run_date(log: RunLog, zone: str) -> date:
    """The business date of what has no partition: as the run is tagged, else when it was made."""
    for tag in (BUSINESS_DATE_TAG, PARTITION_TAG):
        try:
            return date.fromisoformat(log.run.tags.get(tag, "")[:10])
        except ValueError:
            continue
    return log.created_at.astimezone(ZoneInfo(zone)).date()
