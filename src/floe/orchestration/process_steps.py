"""Run a process as a step of Dagster: once for each partition of the run, in their order.

Each key is a run of its own in the catalog, with versions of its own. A failure keeps what the
keys before it have made, and Dagster is told of that before it is told of the failure.
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
    DagsterExecutionInterruptedError,
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
from floe.execution.receiving import receive_for, refuse_rejected
from floe.execution.runner import Circumstances, run_process
from floe.execution.versions.arrivals import Arrival
from floe.orchestration.describing import plain
from floe.orchestration.metadata import LOG, RUN, Read, version_metadata
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
    """One key of a step: what it stands for, and the run that it is."""

    key: str | None
    moment: Moment
    run_id: str


@dataclass(frozen=True)
class _Done:
    """A turn that came to its end."""

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
        """Run for each key in order; then tell what was made, or what went wrong."""
        runtime: Runtime = getattr(context.resources, RESOURCE)
        done: list[_Done] = []
        turns = _turns(context, runtime)
        for turn in turns:
            try:
                with _as_failure(runtime, turn, one_of_many=len(turns) > 1):
                    done.append(self._take(context, runtime, turn))
            except (Failure, DagsterExecutionInterruptedError):
                yield from self._materializations(done)
                yield from self._rejections(runtime, turn)
                raise
        yield from self._results(context, done)

    def _take(self, context: AssetExecutionContext, runtime: Runtime, turn: _Turn) -> _Done:
        """Run the process once, for a key."""
        workspace = runtime.repaired()
        if turn.key is not None:
            context.log.info(f"{self.name} for {turn.key}")
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

    def _results(self, context: AssetExecutionContext, done: Sequence[_Done]) -> Iterator[Any]:
        """Tell what was made. Dagster materialises every key of a run by one result."""
        for output in self.outputs:
            for one in done:
                known = _metadata(one, output)
                context.add_asset_metadata(known, output.key, partition_key=one.turn.key)
            yield MaterializeResult(output.key, check_results=self._verdicts(output, done))
        second = [output for output in self.outputs if output.key != output.of_dataset]
        for one in done:
            yield from (_materialization(one, output, output.of_dataset) for output in second)

    def _materializations(self, done: Sequence[_Done]) -> Iterator[AssetMaterialization]:
        """Tell what was made before something failed: a step that fails has no results."""
        for one in done:
            for output in self.outputs:
                yield _materialization(one, output, output.key)

    def _verdicts(self, output: OutputAsset, done: Sequence[_Done]) -> list[AssetCheckResult]:
        """Return one result for each check: for several keys, the worst of them."""
        found = []
        for name in self.checks[output.dataset]:
            by_key = {
                one.turn.moment.key: verdict
                for one in done
                for verdict in one.made[output.dataset].verdicts
                if plain(verdict.label) == name
            }
            found.append(_check_result(output.key, name, by_key))
        return found

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
                    yield _check_result(output.key, name, {turn.moment.key: verdict})


def _turns(context: AssetExecutionContext, runtime: Runtime) -> list[_Turn]:
    """Return what a step has to do: a turn for each partition key, or one without."""
    # Not public, and the only way to the key that the event log knows the step by.
    step = context.get_step_execution_context()
    default = run_date(step, runtime.zone)
    definition = context.assets_def.partitions_def
    keys: Sequence[str | None] = [None] if definition is None else list(context.partition_keys)
    return [
        _Turn(
            key,
            Moment(default) if key is None else moment_of_key(key, definition, default),
            str(run_id(step.run_id, step.step.key, key, context.retry_number + 1)),
        )
        for key in keys
    ]


def _metadata(done: _Done, output: OutputAsset) -> dict[str, Any]:
    made = done.made[output.dataset]
    return {**version_metadata(made, done.reads), RUN: done.turn.run_id}


def _materialization(done: _Done, output: OutputAsset, key: AssetKey) -> AssetMaterialization:
    return AssetMaterialization(key, partition=done.turn.key, metadata=_metadata(done, output))


def _check_result(key: AssetKey, name: str, verdicts: Mapping[str, Verdict]) -> AssetCheckResult:
    failed = {of: one for of, one in verdicts.items() if one.status != "PASS"}
    if not verdicts:
        said = "nothing was measured"
        return AssetCheckResult(passed=False, asset_key=key, check_name=name, description=said)
    warned = all(one.status == "WARN" for one in failed.values())
    rows = [one.failed_rows for one in failed.values() if one.failed_rows is not None]
    return AssetCheckResult(
        passed=not failed,
        asset_key=key,
        check_name=name,
        severity=AssetCheckSeverity.WARN if failed and warned else AssetCheckSeverity.ERROR,
        description="; ".join(_said(of, one, verdicts) for of, one in failed.items()) or None,
        metadata={"floe/failed_rows": sum(rows)} if rows else {},
    )


def _said(key: str, verdict: Verdict, verdicts: Mapping[str, Verdict]) -> str:
    return verdict.message if len(verdicts) == 1 else f"{key}: {verdict.message}"


def _arrived(arrival: Arrival) -> str:
    said = f"{arrival.dataset} {arrival.tag or ''}: {arrival.state}".replace(" :", ":")
    return f"{said}, {arrival.reason}" if arrival.reason else said


@contextmanager
def _as_failure(runtime: Runtime, turn: _Turn, *, one_of_many: bool) -> Iterator[None]:
    """Say what went wrong in floe's one sentence, with its log: a stack of ours helps nobody."""
    try:
        yield
    except FloeError as error:
        said = f"{turn.key}: {error}" if one_of_many else str(error)
        log = run_log_path(runtime.workspace.site.state_dir, turn.run_id)
        metadata = {LOG: MetadataValue.path(log)} if log.exists() else {}
        raise Failure(said, metadata=metadata) from None
