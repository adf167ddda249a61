"""Run a process as a step of Dagster, for the partition of the run or for its business date.

In a run for several partitions the step is run for each of them in turn (`ranges.py`), so that each
is a run of its own in the catalog, with versions of its own.
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
from floe.execution.assets import MadeVersion, Moment, made_by
from floe.execution.logs import run_log_path
from floe.execution.planning import Wish
from floe.execution.receiving import missing_explained, receive_for, refuse_rejected
from floe.execution.runner import Circumstances, run_process
from floe.execution.versions.arrivals import Arrival
from floe.orchestration.describing import plain
from floe.orchestration.metadata import FAILED_ROWS, LOG, RUN, Read, version_metadata
from floe.orchestration.moments import moment_of_key, run_date
from floe.orchestration.runtime import RESOURCE, Runtime, stoppable
from floe.quality import Verdict
from floe.spec import ProcessSpec
from floe.spec.identity import run_id


@dataclass(frozen=True)
class OutputAsset:
    """An output of a process, and the asset that it is."""

    alias: str
    dataset: str
    key: AssetKey
    of_dataset: AssetKey
    """The key of the dataset: another one where a second process writes it."""


@dataclass(frozen=True)
class _Turn:
    """What a step is to do: the partition key, what it stands for, and the run that it is."""

    key: str | None
    moment: Moment
    run_id: str


@dataclass(frozen=True)
class _Done:
    """What came of it."""

    turn: _Turn
    made: Mapping[str, MadeVersion]
    """By dataset."""
    reads: Sequence[Read]


@dataclass(frozen=True)
class ProcessStep:
    """The work of a process, as Dagster starts it."""

    name: str
    spec: ProcessSpec
    outputs: tuple[OutputAsset, ...]
    checks: Mapping[str, Mapping[str, str]]
    """The checks of each dataset: their names, and what they are for."""

    def run(self, context: AssetExecutionContext) -> Iterator[Any]:
        """Run the process; then tell what was made, or what went wrong."""
        runtime: Runtime = getattr(context.resources, RESOURCE)
        turn = _turn(context, runtime)
        try:
            with _as_failure(runtime, turn):
                done = self._take(context, runtime, turn)
        except Failure:
            yield from self._rejections(runtime, turn)
            raise
        for output in self.outputs:
            yield MaterializeResult(
                output.key,
                metadata=_metadata(done, output),
                check_results=self._verdicts(output, done),
            )
            if output.key != output.of_dataset:
                yield AssetMaterialization(
                    output.of_dataset, partition=turn.key, metadata=_metadata(done, output)
                )

    def _take(self, context: AssetExecutionContext, runtime: Runtime, turn: _Turn) -> _Done:
        workspace = runtime.repaired()
        with stoppable() as cancellation:
            arrivals = receive_for(
                workspace,
                runtime.sparks,
                [self.spec],
                turn.moment.business_date,
                lambda arrival: context.log.info(_arrived(arrival)),
            )
            refuse_rejected(self.spec, arrivals)
            cancellation.check()
            wish = Wish(self.name, turn.moment.business_date, turn.moment.partition)
            how = Circumstances(
                run_id=turn.run_id,
                parent=context.run.run_id,
                listener=context.log.info,
                cancellation=cancellation,
            )
            with missing_explained(arrivals):
                run_process(workspace, runtime.sparks, wish, how)
        made = {one.dataset: one for one in made_by(workspace, turn.run_id)}
        return _Done(turn, made, self._reads(runtime, turn.run_id))

    def _reads(self, runtime: Runtime, run: str) -> list[Read]:
        with runtime.workspace.catalog.reading() as session:
            found = find_run(session, run)
            noted = (found.facets_json or {}).get("floe", {}) if found is not None else {}
        inputs = noted.get("inputs") or {}
        return [
            (self.spec.inputs[alias].dataset, tag)
            for alias, tags in inputs.items()
            if alias in self.spec.inputs
            for tag in tags
        ]

    def _verdicts(self, output: OutputAsset, done: _Done) -> list[AssetCheckResult]:
        found = {plain(one.label): one for one in done.made[output.dataset].verdicts}
        names = self.checks[output.dataset]
        return [_check_result(output.key, name, found.get(name)) for name in names]

    def _rejections(self, runtime: Runtime, turn: _Turn) -> Iterator[AssetCheckResult]:
        """Tell of the checks that a version did not pass."""
        rejected = {
            one.dataset: one
            for one in made_by(runtime.workspace, turn.run_id)
            if one.state == REJECTED
        }
        for output in self.outputs:
            version = rejected.get(output.dataset)
            for verdict in version.verdicts if version is not None else ():
                name = plain(verdict.label)
                if name in self.checks[output.dataset]:
                    yield _check_result(output.key, name, verdict)


def _turn(context: AssetExecutionContext, runtime: Runtime) -> _Turn:
    # Not public, and the only way to the key that the event log knows the step by.
    step = context.get_step_execution_context()
    default = run_date(step, runtime.zone)
    definition = context.assets_def.partitions_def
    key = None if definition is None else context.partition_key
    moment = Moment(default) if key is None else moment_of_key(key, definition, default)
    own_id = run_id(step.run_id, step.step.key, key, context.retry_number + 1)
    return _Turn(key, moment, str(own_id))


def _metadata(done: _Done, output: OutputAsset) -> dict[str, Any]:
    made = done.made[output.dataset]
    return {**version_metadata(made, done.reads), RUN: done.turn.run_id}


def _check_result(key: AssetKey, name: str, verdict: Verdict | None) -> AssetCheckResult:
    if verdict is None:
        said = "Nothing was measured."
        return AssetCheckResult(passed=False, asset_key=key, check_name=name, description=said)
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


def _arrived(arrival: Arrival) -> str:
    said = f"{arrival.dataset} {arrival.tag or ''}: {arrival.state}".replace(" :", ":")
    return f"{said}, {arrival.reason}" if arrival.reason else said


@contextmanager
def _as_failure(runtime: Runtime, turn: _Turn) -> Iterator[None]:
    """Say what went wrong in floe's one sentence, with its log: a stack of ours helps nobody."""
    try:
        yield
    except FloeError as error:
        log = run_log_path(runtime.workspace.site.state_dir, turn.run_id)
        metadata = {LOG: MetadataValue.path(log)} if log.exists() else {}
        raise Failure(str(error), metadata=metadata) from None
