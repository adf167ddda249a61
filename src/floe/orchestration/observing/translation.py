"""Translate the folded log of a Dagster run into reports. Pure.

Reports depend on the log alone, so a log that is read twice gives the same reports, and the
catalog records them once.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from dagster import AssetKey, DagsterEventType, DagsterRun

from floe.orchestration.dbt.nodes import UNIQUE_ID
from floe.orchestration.metadata import (
    ENDED,
    FAILED,
    PRODUCER_CHECK,
    READS,
    RUN,
    STARTED,
    VERSIONS,
)
from floe.orchestration.observing.asset_index import AssetIndex
from floe.orchestration.observing.reports import Failure, Input, Kind, ObservedRun, Output, Report
from floe.orchestration.observing.run_logs import (
    Attempt,
    CheckEvent,
    End,
    FoldedLog,
    Materialization,
    PlannedAsset,
    judge_version,
    parse_time,
    plain_value,
)
from floe.orchestration.selection import name_of
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


@dataclass(frozen=True)
class RunLog:
    """A Dagster run with its log, read from some position onwards."""

    run: DagsterRun
    created_at: datetime
    started_at: datetime | None
    folded: FoldedLog
    planned: Mapping[str, Sequence[PlannedAsset]] = field(default_factory=dict)
    checked_version: Callable[[CheckEvent], str] = lambda _: ""
    """Returns the version that a check was run on."""


def translate(log: RunLog, index: AssetIndex) -> list[Report]:
    """Return the reports of a run in the order of the log."""
    reports = list(_Translation(log, index).reports())
    return sorted(reports, key=lambda report: report.position)


class _Translation:
    def __init__(self, log: RunLog, index: AssetIndex) -> None:
        self._log, self._index = log, index
        self._run, self._folded = log.run, log.folded
        self._default_date = _run_date(log, index.zone)

    def reports(self) -> Iterator[Report]:
        yield from self._job()
        for step, attempts in self._folded.attempts.items():
            for attempt in attempts:
                yield from self._attempt(step, attempt)

    def _job(self) -> Iterator[Report]:
        started, end = self._folded.started, self._folded.end
        started_at = started[1] if started else (self._log.started_at or self._log.created_at)
        run = ObservedRun(
            self._run.run_id,
            dagster_job(self._index.project, self._run.job_name),
            self._run.run_id,
            started_at,
            self._default_date,
            JOB,
            self._run.tags.get(PARTITION_TAG),
        )
        if started is not None:
            yield Report(started[0], "START", started[1], run)
        if end is not None:
            yield Report(end.position, _kind_of(end), end.at, run, failure=end.failure)

    def _attempt(self, step: str, attempt: Attempt) -> Iterator[Report]:
        planned = self._log.planned.get(step, ())
        keys = {asset.key for asset in planned} | {
            materialization.key for materialization in attempt.materializations
        }
        is_process = any(
            RUN in materialization.metadata for materialization in attempt.materializations
        )
        if is_process or keys & self._index.processes:
            # The runner of a process reports its run and its checks itself.
            return
        end = attempt.end or self._folded.end
        if keys & self._index.models.keys():
            yield from self._models(step, attempt, end)
        elif keys:
            yield from self._asset(step, attempt, planned, end)
        for check in attempt.checks:
            if check.evaluation.check_name != PRODUCER_CHECK:
                yield from self._check(step, attempt, check)

    # --- Python assets

    def _asset(
        self, step: str, attempt: Attempt, planned: Sequence[PlannedAsset], end: End | None
    ) -> Iterator[Report]:
        materializations = attempt.materializations
        keys = sorted(
            {asset.key for asset in planned}
            | {materialization.key for materialization in materializations}
        )
        ranged = next((asset for asset in planned if asset.is_range), None)
        if ranged is not None:
            yield from self._range(step, attempt, keys, ranged.partitions, end)
            return
        partitions = [asset.partitions[0] for asset in planned if asset.partitions]
        partitions += [
            materialization.partition
            for materialization in materializations
            if materialization.partition is not None
        ]
        partition = partitions[0] if partitions else None
        run = self._step_run(step, attempt, keys, partition, attempt.at)
        yield self._start(run, attempt.position, keys)
        if end is not None:
            yield self._end(run, end, keys, materializations)

    def _range(
        self,
        step: str,
        attempt: Attempt,
        keys: Sequence[AssetKey],
        partitions: Sequence[str],
        end: End | None,
    ) -> Iterator[Report]:
        """Report one run per partition: each starts where the one before ended."""
        started_at, by_partition = attempt.at, _by_partition(attempt.materializations)
        for partition, group in by_partition.items():
            complete = len({materialization.key for materialization in group}) == len(keys)
            if not complete and end is None:
                return
            run = self._step_run(step, attempt, keys, partition, started_at)
            last = group[-1]
            yield self._start(run, last.position, keys)
            success = End(last.position, last.at, DagsterEventType.STEP_SUCCESS)
            yield self._end(run, success, keys, group)
            started_at = last.at
        left = [partition for partition in partitions if partition not in by_partition]
        if end is not None and left and end.failure is not None:
            run = self._step_run(step, attempt, keys, left[0], started_at)
            yield self._start(run, end.position, keys)
            yield self._end(run, end, keys, ())

    def _step_run(
        self,
        step: str,
        attempt: Attempt,
        keys: Sequence[AssetKey],
        partition: str | None,
        started_at: datetime,
    ) -> ObservedRun:
        return ObservedRun(
            self._id(step, partition, attempt),
            self._index.process_of(keys, step),
            self._run.run_id,
            started_at,
            self._index.date_of(keys[0], partition) or self._default_date,
            ASSET,
            partition,
            step,
            attempt.index,
        )

    def _start(self, run: ObservedRun, position: int, keys: Sequence[AssetKey]) -> Report:
        outputs = self._planned_outputs(keys)
        return Report(position, "START", run.started_at, run, outputs=outputs)

    def _end(
        self,
        run: ObservedRun,
        end: End,
        keys: Sequence[AssetKey],
        materializations: Sequence[Materialization],
    ) -> Report:
        kind = _kind_of(end)
        outputs = [
            output
            for materialization in materializations
            for output in _outputs_of(materialization)
        ]
        if kind != "COMPLETE":
            # What a failed attempt has written is reported without a version.
            outputs = self._planned_outputs(keys)
        return Report(
            end.position,
            kind,
            end.at,
            run,
            self._inputs(keys, materializations),
            outputs,
            end.failure,
            next(
                (
                    materialization.sql
                    for materialization in materializations
                    if materialization.sql
                ),
                None,
            ),
        )

    def _planned_outputs(self, keys: Sequence[AssetKey]) -> list[Output]:
        """Return the datasets of assets; none yet for a whole dbt project."""
        if any(key in self._index.dbt_projects for key in keys):
            return []
        return [Output(name_of(key)) for key in keys]

    def _inputs(
        self, keys: Sequence[AssetKey], materializations: Sequence[Materialization]
    ) -> list[Input]:
        """Return the versions that were read, then declared inputs of unknown version."""
        read = dict.fromkeys(
            Input(str(entry["dataset"]), str(entry["version"]))
            for materialization in materializations
            for entry in materialization.metadata.get(READS) or ()
        )
        excluded = {source.dataset for source in read} | {name_of(key) for key in keys}
        declared = dict.fromkeys(name for key in keys for name in self._index.inputs.get(key, ()))
        return [*read, *(Input(name) for name in declared if name not in excluded)]

    # --- dbt models

    def _models(self, step: str, attempt: Attempt, end: End | None) -> Iterator[Report]:
        for materialization in attempt.materializations:
            if materialization.key in self._index.models:
                yield from self._model(step, attempt, materialization, end)
        if end is not None:
            for failed in end.metadata.get(FAILED) or ():
                yield from self._failed_model(step, attempt, failed, end)

    def _model(
        self, step: str, attempt: Attempt, materialization: Materialization, end: End | None
    ) -> Iterator[Report]:
        started_at = parse_time(materialization.metadata.get(STARTED)) or materialization.at
        run = self._model_run(
            step, attempt, materialization.key, materialization.partition, started_at
        )
        outputs = [Output(name_of(materialization.key))]
        yield Report(materialization.position, "START", started_at, run, outputs=outputs)
        judgement = judge_version(materialization, attempt.checks, end)
        if judgement is None:
            return
        position, reason = judgement
        yield Report(
            position,
            "COMPLETE",
            parse_time(materialization.metadata.get(ENDED)) or materialization.at,
            run,
            self._inputs([materialization.key], [materialization]),
            [replace(materialization.output, rejected=reason)],
            sql=materialization.sql,
        )

    def _failed_model(
        self, step: str, attempt: Attempt, failed: Mapping[str, Any], end: End
    ) -> Iterator[Report]:
        kind, project, name = str(failed[UNIQUE_ID]).split(".", 2)
        process = dbt_process(project, name)
        models = self._index.models.items()
        key = next((key for key, model_process in models if model_process == process), None)
        if kind == "test" or key is None:
            # A failed test is reported by its check.
            return
        started_at = parse_time(failed.get(STARTED)) or attempt.at
        run = self._model_run(step, attempt, key, self._partition_of(step, key), started_at)
        outputs = [Output(name_of(key))]
        yield Report(end.position, "START", started_at, run, outputs=outputs)
        yield Report(
            end.position,
            "FAIL",
            parse_time(failed.get(ENDED)) or end.at,
            run,
            self._inputs([key], ()),
            outputs,
            Failure(str(failed.get("message") or "dbt gives no reason.")),
            failed.get("sql") or None,
        )

    def _partition_of(self, step: str, key: AssetKey) -> str | None:
        planned = [asset for asset in self._log.planned.get(step, ()) if asset.key == key]
        return planned[0].partitions[0] if planned and planned[0].partitions else None

    def _model_run(
        self,
        step: str,
        attempt: Attempt,
        key: AssetKey,
        partition: str | None,
        started_at: datetime,
    ) -> ObservedRun:
        return ObservedRun(
            self._id(f"{step}/{name_of(key)}", partition, attempt),
            self._index.models[key],
            self._run.run_id,
            started_at,
            self._index.date_of(key, partition) or self._default_date,
            MODEL,
            partition,
            step,
            attempt.index,
        )

    # --- checks

    def _check(self, step: str, attempt: Attempt, check: CheckEvent) -> Iterator[Report]:
        evaluation = check.evaluation
        key, name, partition = evaluation.asset_key, evaluation.check_name, evaluation.partition
        dataset = name_of(key)
        alone = not attempt.materializations and len(attempt.checks) == 1
        started_at = _logged_time(check, STARTED) or (attempt.at if alone else check.at)
        run = ObservedRun(
            self._id(f"{step}/{dataset}:{name}", partition, attempt),
            self._check_process(key, name),
            self._run.run_id,
            started_at,
            self._index.date_of(key, partition) or self._default_date,
            CHECK,
            partition,
            step,
            attempt.index,
        )
        verdict = check.verdict
        failed = not verdict.passed and verdict.strict
        message = verdict.message or f"The check {name} failed on {dataset}."
        version = attempt.version_before(check) or self._log.checked_version(check)
        yield Report(check.position, "START", started_at, run)
        yield Report(
            check.position,
            "FAIL" if failed else "COMPLETE",
            _logged_time(check, ENDED) or check.at,
            run,
            [Input(dataset, version, [verdict])],
            failure=Failure(message) if failed else None,
        )

    def _check_process(self, key: AssetKey, name: str) -> ProcessId:
        test = self._index.tests.get((key, name))
        return test or floe_process(self._index.project, f"{name_of(key)}/{name}")

    def _id(self, step: str, partition: str | None, attempt: Attempt) -> str:
        return str(run_id(self._run.run_id, step, partition, attempt.index))


def _outputs_of(materialization: Materialization) -> list[Output]:
    if VERSIONS in materialization.metadata:
        versions = materialization.metadata[VERSIONS]
        return [Output(name, str(tag)) for name, tag in sorted(versions.items())]
    return [materialization.output]


def _by_partition(
    materializations: Sequence[Materialization],
) -> dict[str | None, list[Materialization]]:
    groups: dict[str | None, list[Materialization]] = {}
    for materialization in materializations:
        groups.setdefault(materialization.partition, []).append(materialization)
    return groups


def _logged_time(check: CheckEvent, name: str) -> datetime | None:
    return parse_time(plain_value(check.evaluation.metadata.get(name)))


def _kind_of(end: End) -> Kind:
    if end.type in (DagsterEventType.STEP_SUCCESS, DagsterEventType.RUN_SUCCESS):
        return "COMPLETE"
    return "ABORT" if end.type is DagsterEventType.RUN_CANCELED else "FAIL"


def _run_date(log: RunLog, zone: str) -> date:
    """Return the default business date: from the run's tags, else its creation."""
    for tag in (BUSINESS_DATE_TAG, PARTITION_TAG):
        try:
            return date.fromisoformat(log.run.tags.get(tag, "")[:10])
        except ValueError:
            continue
    return log.created_at.astimezone(ZoneInfo(zone)).date()
