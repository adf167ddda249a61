"""Run a process as a Dagster step, for the partition or the business date of the run.

In a run for several partitions the step runs once for each (`ranges.py`), so that each has its own
run and versions in the catalog.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dagster import (
    AssetCheckResult,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    Failure,
    MaterializeResult,
    MetadataValue,
)

from floe.catalog.runs import find_run
from floe.catalog.versions import REJECTED
from floe.errors import FloeError
from floe.execution.asset_versions import OutputVersion, VersionKey, output_versions
from floe.execution.batch import receive_and_run
from floe.execution.planning import RunOptions
from floe.execution.reporting import run_log_path
from floe.execution.runner import RunContext
from floe.execution.versions.arrivals import Arrival
from floe.orchestration.business_dates import moment_of_key, run_date
from floe.orchestration.metadata import FAILED_ROWS, LOG, RUN, Read, plain, version_metadata
from floe.orchestration.runtime import RESOURCE, Runtime, stoppable
from floe.quality import Verdict
from floe.spec import ProcessSpec
from floe.spec.identity import run_id


@dataclass(frozen=True)
class OutputAsset:
    """An output of a process, and its asset."""

    alias: str
    dataset: str
    key: AssetKey
    dataset_key: AssetKey
    """The asset key of the dataset; differs from `key` for a second writer."""


@dataclass(frozen=True)
class _Task:
    """The partition key of a step, its business date, and the id of its floe run."""

    key: str | None
    moment: VersionKey
    run_id: str


@dataclass(frozen=True)
class _Result:
    """The versions that a step wrote and read."""

    task: _Task
    versions: Mapping[str, OutputVersion]
    """The written versions, by dataset."""
    reads: Sequence[Read]


@dataclass(frozen=True)
class ProcessStep:
    """A process as a Dagster step."""

    name: str
    spec: ProcessSpec
    outputs: tuple[OutputAsset, ...]
    checks: Mapping[str, Mapping[str, str]]
    """The checks of each dataset: their names and descriptions."""

    def run(self, context: AssetExecutionContext) -> Iterator[Any]:
        """Run the process, and yield its materializations or its failed checks."""
        runtime: Runtime = getattr(context.resources, RESOURCE)
        task = _task_of(context, runtime)
        try:
            with _errors_as_failure(runtime, task):
                result = self._execute(context, runtime, task)
        except Failure:
            yield from self._rejections(runtime, task)
            raise
        for output in self.outputs:
            yield MaterializeResult(
                output.key,
                metadata=_metadata(result, output),
                check_results=self._verdicts(output, result),
            )
            if output.key != output.dataset_key:
                yield AssetMaterialization(
                    output.dataset_key, partition=task.key, metadata=_metadata(result, output)
                )

    def _execute(self, context: AssetExecutionContext, runtime: Runtime, task: _Task) -> _Result:
        workspace = runtime.repaired()
        with stoppable() as cancellation:
            receive_and_run(
                workspace,
                runtime.sparks,
                RunOptions(self.name, task.moment.business_date, task.moment.partition),
                RunContext(
                    run_id=task.run_id,
                    parent=context.run.run_id,
                    listener=context.log.info,
                    cancellation=cancellation,
                ),
                lambda arrival: context.log.info(_describe_arrival(arrival)),
            )
        versions = {version.dataset: version for version in output_versions(workspace, task.run_id)}
        return _Result(task, versions, self._reads(runtime, task.run_id))

    def _reads(self, runtime: Runtime, run: str) -> list[Read]:
        with runtime.workspace.catalog.reading() as session:
            record = find_run(session, run)
            facets = (record.facets_json or {}).get("floe", {}) if record is not None else {}
        inputs = facets.get("inputs") or {}
        return [
            (self.spec.inputs[alias].dataset, tag)
            for alias, tags in inputs.items()
            if alias in self.spec.inputs
            for tag in tags
        ]

    def _verdicts(self, output: OutputAsset, result: _Result) -> list[AssetCheckResult]:
        verdicts = {
            plain(verdict.label): verdict for verdict in result.versions[output.dataset].verdicts
        }
        names = self.checks[output.dataset]
        return [_check_result(output.key, name, verdicts.get(name)) for name in names]

    def _rejections(self, runtime: Runtime, task: _Task) -> Iterator[AssetCheckResult]:
        """Yield the checks of rejected versions."""
        rejected = {
            version.dataset: version
            for version in output_versions(runtime.workspace, task.run_id)
            if version.state == REJECTED
        }
        for output in self.outputs:
            version = rejected.get(output.dataset)
            for verdict in version.verdicts if version is not None else ():
                name = plain(verdict.label)
                if name in self.checks[output.dataset]:
                    yield _check_result(output.key, name, verdict)


def _task_of(context: AssetExecutionContext, runtime: Runtime) -> _Task:
    # Not public, but the only way to the step key of the event log.
    step = context.get_step_execution_context()
    default = run_date(step, runtime.zone)
    definition = context.assets_def.partitions_def
    key = None if definition is None else context.partition_key
    moment = VersionKey(default) if key is None else moment_of_key(key, definition, default)
    own_id = run_id(step.run_id, step.step.key, key, context.retry_number + 1)
    return _Task(key, moment, str(own_id))


def _metadata(result: _Result, output: OutputAsset) -> dict[str, Any]:
    version = result.versions[output.dataset]
    return {**version_metadata(version, result.reads), RUN: result.task.run_id}


def _check_result(key: AssetKey, name: str, verdict: Verdict | None) -> AssetCheckResult:
    if verdict is None:
        message = "The check was not evaluated."
        return AssetCheckResult(passed=False, asset_key=key, check_name=name, description=message)
    failed = verdict.failed_rows
    return AssetCheckResult(
        passed=verdict.status == "PASS",
        asset_key=key,
        check_name=name,
        severity=(
            AssetCheckSeverity.WARN if verdict.status == "WARN" else AssetCheckSeverity.ERROR
        ),
        description=verdict.message or None,
        metadata={} if failed is None else {FAILED_ROWS: failed},
    )


def _describe_arrival(arrival: Arrival) -> str:
    summary = f"{arrival.dataset} {arrival.tag or ''}: {arrival.state}".replace(" :", ":")
    return f"{summary}, {arrival.reason}" if arrival.reason else summary


@contextmanager
def _errors_as_failure(runtime: Runtime, task: _Task) -> Iterator[None]:
    """Report floe's errors as one sentence with the log, without a stack trace."""
    try:
        yield
    except FloeError as error:
        log = run_log_path(runtime.workspace.site.state_dir, task.run_id)
        metadata = {LOG: MetadataValue.path(log)} if log.exists() else {}
        raise Failure(str(error), metadata=metadata) from None
