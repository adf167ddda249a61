"""A Dagster step that builds dbt models and reports each one when it finishes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    AssetExecutionContext,
    AssetKey,
    Failure,
    MaterializeResult,
    MetadataValue,
)

from floe.errors import FloeError
from floe.execution.asset_versions import VersionKey
from floe.execution.spark.session import interrupt
from floe.orchestration.dbt.build import Build, End, NodeResult, Remark
from floe.orchestration.dbt.dbt_project import DbtProject
from floe.orchestration.dbt.model_versions import NodeVersions, Versions
from floe.orchestration.dbt.nodes import UNIQUE_ID, Manifest, Node, dataset_of, is_strict
from floe.orchestration.dbt.windows import Window, is_partitioned, window_of
from floe.orchestration.metadata import (
    AWAITS,
    CHECKED,
    ENDED,
    FAILED,
    READS,
    ROWS,
    SCHEMA,
    SIZE,
    SNAPSHOT,
    SQL,
    STARTED,
    VERSION,
    VERSIONS,
    Read,
    reads_metadata,
    schema_metadata,
)
from floe.orchestration.runtime import RESOURCE, Runtime

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

Moments = Sequence[tuple[str | None, VersionKey]]

NOT_SPARK = ("[PARSE_SYNTAX_ERROR]", "[UNRESOLVED_ROUTINE]", "[UNSUPPORTED_DATATYPE]")
"""Spark's error classes for SQL in another dialect."""
GOOD = frozenset({"success", "pass"})
SKIPPED = frozenset({"skipped", "no-op"})

INTERRUPT_SECONDS = 0.5
"""How often running statements are interrupted when a step is stopped."""


@dataclass(frozen=True)
class Plan:
    """The assets and checks that a step builds."""

    project: DbtProject
    manifest: Manifest
    assets: Mapping[str, AssetKey]
    """The assets by dbt's unique ids."""
    checks: Mapping[str, AssetCheckKey]
    as_one: AssetKey | None = None
    """The asset for the whole project, if models are not reported separately."""

    def node(self, unique_id: str) -> Node:
        node: Node = self.manifest["nodes"][unique_id]
        return node

    @property
    def nodes(self) -> list[Node]:
        return [self.node(name) for name in self.assets]


@dataclass
class Step:
    """A running step."""

    context: AssetExecutionContext
    plan: Plan
    window: Window
    versions: Versions
    failed: list[tuple[Node, NodeResult]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    built: dict[str, str] = field(default_factory=dict)
    """The datasets that were built, with their newest versions."""

    def report(self, result: NodeResult) -> Iterator[Any]:
        """Report a node that has finished."""
        if result.unique_id in self.plan.checks:
            yield from self._report_test(result)
        elif result.unique_id in self.plan.assets:
            yield from self._report_model(result)

    def _report_model(self, result: NodeResult) -> Iterator[Any]:
        node, key = self.plan.node(result.unique_id), self.plan.assets[result.unique_id]
        if is_skipped(result):
            self.skipped.append(dataset_of(node))
        elif not is_good(result):
            self.failed.append((node, result))
        else:
            moments = self._moments(key)
            versions = self.versions.tag(node, [moment for _, moment in moments])
            self.built[dataset_of(node)] = versions.tags[-1]
            if self.plan.as_one is None:
                reads = self.versions.reads(node)
                metadata = model_metadata(result, versions, reads, self.awaited.get(key, ()))
                yield self._materialization(key, moments, versions.tags, metadata)

    def _materialization(
        self, key: AssetKey, moments: Moments, tags: Sequence[str], metadata: Mapping[str, Any]
    ) -> MaterializeResult[Any]:
        if len(tags) == 1:
            return MaterializeResult(asset_key=key, metadata={VERSION: tags[0], **metadata})
        for (partition, _), tag in zip(moments, tags, strict=True):
            self.context.add_asset_metadata({VERSION: tag}, key, partition_key=partition)
        return MaterializeResult(asset_key=key, metadata=metadata)

    def _report_test(self, result: NodeResult) -> Iterator[Any]:
        test, key = self.plan.node(result.unique_id), self.plan.checks[result.unique_id]
        if is_skipped(result):
            return
        verdict = check_result(test, key, result)
        if not verdict.passed and verdict.severity.value == "ERROR":
            self.failed.append((test, result))
        if self.plan.as_one is None:
            yield verdict

    def _moments(self, key: AssetKey) -> Moments:
        separately = self.plan.as_one is None and is_partitioned(self.context, key)
        return self.window.moments if separately else ((None, self.window.moment),)

    @cached_property
    def awaited(self) -> dict[AssetKey, list[str]]:
        """The checks that a version of each asset must pass before it is READY."""
        checks: dict[AssetKey, list[str]] = {}
        for name, check in self.plan.checks.items():
            if is_strict(self.plan.node(name)):
                checks.setdefault(check.asset_key, []).append(check.name)
        return checks

    def finish(self, reason: str | None) -> Iterator[Any]:
        """Finish the step: fail it, or report the asset that stands for the project."""
        if self.failed or reason is not None:
            raise Failure(
                description=_failure_message(self.failed, self.skipped, reason),
                metadata={FAILED: [failure_of(node, result) for node, result in self.failed]},
            )
        if self.plan.as_one is not None:
            yield MaterializeResult(asset_key=self.plan.as_one, metadata={VERSIONS: self.built})


def run_step(context: AssetExecutionContext, plan: Plan) -> Iterator[Any]:
    """Run dbt for a step and report each model and test when it finishes."""
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
                yield from step.report(event)
            case Remark():
                log = step.context.log
                (log.error if event.level == "error" else log.warning)(event.text)
            case End():
                yield from step.finish(event.reason)


@contextmanager
def _under_way(build: Build, spark: "SparkSession") -> Iterator[Build]:
    """Run dbt; stop it when the step ends for any reason."""
    build.start()
    try:
        yield build
    finally:
        build.stop()
        while not build.ended(0):
            interrupt(spark)
            build.ended(INTERRUPT_SECONDS)


def _failure_message(
    failed: list[tuple[Node, NodeResult]], skipped: list[str], reason: str | None
) -> str:
    lines = [f"{node['resource_type']} {node['name']}: {result.message}" for node, result in failed]
    if reason is not None:
        lines.append(reason)
    lines += _advice(failed)
    if skipped:
        lines.append(f"Skipped because an upstream failed: {', '.join(skipped)}.")
    return "\n".join(["dbt failed.", *lines])


def _advice(failed: list[tuple[Node, NodeResult]]) -> Iterator[str]:
    """Yield advice, once each, on errors that come from how the project is written."""
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


def is_good(result: NodeResult) -> bool:
    return result.status in GOOD


def is_skipped(result: NodeResult) -> bool:
    return result.status in SKIPPED


def model_metadata(
    result: NodeResult, versions: NodeVersions, reads: Sequence[Read], awaits: Sequence[str]
) -> dict[str, Any]:
    """Return the metadata of a materialization, without its version tag."""
    known: dict[str, Any] = {
        ROWS: versions.rows,
        SIZE: versions.size,
        SNAPSHOT: versions.snapshot,
        SCHEMA: schema_metadata(versions.columns),
        READS: reads_metadata(reads) if reads else None,
        SQL: MetadataValue.md(f"```sql\n{result.sql}\n```") if result.sql else None,
        CHECKED: False,
        AWAITS: MetadataValue.json(list(awaits)) if awaits else None,
        **_times(result),
    }
    return {name: value for name, value in known.items() if value is not None}


def check_result(test: Node, key: AssetCheckKey, result: NodeResult) -> AssetCheckResult:
    """Return the result of a test. A test that could not run fails."""
    broken = result.status == "error"
    severe = broken or (is_strict(test) and result.status != "warn")
    metadata: dict[str, Any] = {"dbt/failures": result.failures, **_times(result)}
    if result.sql:
        metadata[SQL] = result.sql
    return AssetCheckResult(
        passed=is_good(result),
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR if severe else AssetCheckSeverity.WARN,
        description=None if is_good(result) else result.message,
        metadata=metadata,
    )


def failure_of(node: Node, result: NodeResult) -> dict[str, Any]:
    """Describe a failed node for the step's failure metadata."""
    return {
        UNIQUE_ID: result.unique_id,
        "name": node["name"],
        "message": result.message,
        "sql": result.sql,
        **_times(result),
    }


def _times(result: NodeResult) -> dict[str, Any]:
    """Return start and end times. dbt reports them in UTC, without an offset."""
    written = {STARTED: result.started_at, ENDED: result.ended_at}
    return {name: f"{value}+00:00" for name, value in written.items() if value}
