"""A step of dbt: exactly its models, told of as they are made."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster import AssetCheckKey, AssetExecutionContext, AssetKey, Failure, MaterializeResult

from floe.errors import FloeError
from floe.execution.assets import Moment
from floe.execution.spark.session import interrupt
from floe.orchestration.dbt.building import Build, End, NodeResult, Remark
from floe.orchestration.dbt.checks import is_strict
from floe.orchestration.dbt.nodes import Manifest, Node, dataset_of
from floe.orchestration.dbt.project import DbtProject
from floe.orchestration.dbt.results import (
    check_result,
    failure_of,
    is_good,
    is_skipped,
    model_metadata,
)
from floe.orchestration.dbt.versions import Versions
from floe.orchestration.dbt.windows import Window, is_partitioned, window_of
from floe.orchestration.metadata import FAILED, VERSION, VERSIONS
from floe.orchestration.runtime import RESOURCE, Runtime

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Told = MaterializeResult[Any]
Moments = Sequence[tuple[str | None, Moment]]

NOT_SPARK = ("[PARSE_SYNTAX_ERROR]", "[UNRESOLVED_ROUTINE]", "[UNSUPPORTED_DATATYPE]")
"""What Spark says of SQL in another dialect."""

PATIENCE = 0.5
"""How often what still runs is interrupted, in seconds, when a step is stopped."""


@dataclass(frozen=True)
class Plan:
    """What a step has to make."""

    project: DbtProject
    manifest: Manifest
    assets: Mapping[str, AssetKey]
    """The assets by dbt's own ids."""
    checks: Mapping[str, AssetCheckKey]
    as_one: AssetKey | None = None
    """The asset that stands for all of the project, where models are not told of one by one."""

    def node(self, unique_id: str) -> Node:
        node: Node = self.manifest["nodes"][unique_id]
        return node

    @property
    def nodes(self) -> list[Node]:
        return [self.node(name) for name in self.assets]


@dataclass
class Step:
    """A step under way."""

    context: AssetExecutionContext
    plan: Plan
    window: Window
    versions: Versions
    failed: list[tuple[Node, NodeResult]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    """The datasets that were made, and their newest versions."""

    def heed(self, result: NodeResult) -> Iterator[Any]:
        """Tell of a node that has ended."""
        if result.unique_id in self.plan.checks:
            yield from self._heed_test(result)
        elif result.unique_id in self.plan.assets:
            yield from self._heed_model(result)

    def _heed_model(self, result: NodeResult) -> Iterator[Any]:
        node, key = self.plan.node(result.unique_id), self.plan.assets[result.unique_id]
        if is_skipped(result):
            self.skipped.append(dataset_of(node))
        elif not is_good(result):
            self.failed.append((node, result))
        else:
            moments = self._moments(key)
            made = self.versions.make(node, [moment for _, moment in moments])
            self.made[dataset_of(node)] = made.tags[-1]
            if self.plan.as_one is None:
                reads = self.versions.reads(node)
                metadata = model_metadata(result, made, reads, self.awaited.get(key, ()))
                yield self._told(key, moments, made.tags, metadata)

    def _told(
        self, key: AssetKey, moments: Moments, tags: Sequence[str], metadata: Mapping[str, Any]
    ) -> Told:
        if len(tags) == 1:
            return MaterializeResult(asset_key=key, metadata={VERSION: tags[0], **metadata})
        for (partition, _), tag in zip(moments, tags, strict=True):
            self.context.add_asset_metadata({VERSION: tag}, key, partition_key=partition)
        return MaterializeResult(asset_key=key, metadata=metadata)

    def _heed_test(self, result: NodeResult) -> Iterator[Any]:
        test, key = self.plan.node(result.unique_id), self.plan.checks[result.unique_id]
        if is_skipped(result):
            return
        verdict = check_result(test, key, result)
        if not verdict.passed and verdict.severity.value == "ERROR":
            self.failed.append((test, result))
        if self.plan.as_one is None:
            yield verdict

    def _moments(self, key: AssetKey) -> Moments:
        one_by_one = self.plan.as_one is None and is_partitioned(self.context, key)
        return self.window.moments if one_by_one else ((None, self.window.moment),)

    @cached_property
    def awaited(self) -> dict[AssetKey, list[str]]:
        """The checks that a version of each asset has to pass before it is good."""
        found: dict[AssetKey, list[str]] = {}
        for name, check in self.plan.checks.items():
            if is_strict(self.plan.node(name)):
                found.setdefault(check.asset_key, []).append(check.name)
        return found

    def finish(self, reason: str | None) -> Iterator[Any]:
        """End the step: as one asset, if that is what is told of; or as a failure."""
        if self.failed or reason is not None:
            raise Failure(
                description=_words(self.failed, self.skipped, reason),
                metadata={FAILED: [failure_of(node, result) for node, result in self.failed]},
            )
        if self.plan.as_one is not None:
            yield MaterializeResult(asset_key=self.plan.as_one, metadata={VERSIONS: self.made})


def run_step(context: AssetExecutionContext, plan: Plan) -> Iterator[Any]:
    """Run dbt for a step, and tell of each model and test when it has ended."""
    runtime: Runtime = getattr(context.resources, RESOURCE)
    window = window_of(context, runtime.zone)
    try:
        with runtime.offered_to_dbt() as spark:
            versions = Versions(runtime.workspace, spark, context.instance, plan.manifest)
            step = Step(context, plan, window, versions)
            chosen = frozenset([*plan.assets, *plan.checks])
            sessions = runtime.session_for_values
            build = Build(plan.project, chosen, window.variables, sessions, plan.manifest)
            with _under_way(build, spark):
                versions.look(plan.nodes)
                yield from _follow(step, build)
    except FloeError as error:
        raise Failure(str(error)) from error


def _follow(step: Step, build: Build) -> Iterator[Any]:
    for event in build.events():
        match event:
            case NodeResult():
                yield from step.heed(event)
            case Remark():
                log = step.context.log
                (log.error if event.level == "error" else log.warning)(event.text)
            case End():
                yield from step.finish(event.reason)


@contextmanager
def _under_way(build: Build, spark: "SparkSession") -> Iterator[Build]:
    """Let dbt run; whatever ends the step ends it too."""
    build.start()
    try:
        yield build
    finally:
        build.stop()
        while not build.ended(0):
            interrupt(spark)
            build.ended(PATIENCE)


def _words(failed: list[tuple[Node, NodeResult]], skipped: list[str], reason: str | None) -> str:
    lines = [f"{node['resource_type']} {node['name']}: {result.message}" for node, result in failed]
    if reason is not None:
        lines.append(reason)
    lines += _advice(failed)
    if skipped:
        lines.append(f"Not made, as they stand on these: {', '.join(skipped)}.")
    return "\n".join(["dbt failed.", *lines])


def _advice(failed: list[tuple[Node, NodeResult]]) -> Iterator[str]:
    """Say once what helps against errors that come from how a project was written."""
    if any(node.get("language") == "python" for node, _ in failed):
        yield (
            "dbt-spark runs Python models on Databricks only. Write them as Python assets "
            "(orchestration.asset_modules), or leave them out with transforms[0].exclude."
        )
    if any(sign in result.message for _, result in failed for sign in NOT_SPARK):
        yield (
            "floe runs dbt models on Spark. If this SQL was written for another database, write "
            "it in Spark's dialect or with dbt's cross-database macros."
        )
