"""One attempt at a run: its own Spark session and output leases, all or nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from floe import clock
from floe.execution.cancellation import Cancellation
from floe.execution.engines import engine_named
from floe.execution.engines.contract import InPlace, Outputs, StepRecord, Work
from floe.execution.failures import wait_out_outages
from floe.execution.frames import input_frame
from floe.execution.outputs import PublishedOutput, mark_input, needs_spark_plan, shape_of
from floe.execution.planning import RunPlan
from floe.execution.reporting import RunLog
from floe.execution.spark.queries import explain
from floe.execution.spark.session import SparkSessions, interrupt
from floe.execution.versions.drafts import (
    Draft,
    abandon_on_failure,
    adopt_draft,
    audit_draft,
    publish_draft,
    reject_broken_contract,
    reserve_draft,
    write_draft,
)
from floe.execution.versions.version_access import WriterSession, table_lease
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

MAX_WAIT = timedelta(days=1)


class Attempt:
    """One try at the work of a run."""

    def __init__(
        self, workspace: Workspace, sparks: SparkSessions, plan: RunPlan, run_id: str, log: RunLog
    ) -> None:
        self._workspace, self._sparks, self._plan = workspace, sparks, plan
        self._run_id, self._log = run_id, log
        self.steps: list[StepRecord] = []
        self.explained: dict[str, str] = {}
        """Spark's plan of each output that a function returned, by alias."""

    def run(
        self, cancellation: Cancellation, *, skip: Sequence[str] = ()
    ) -> Mapping[str, PublishedOutput]:
        """Compute, write, check and publish; readers see nothing of a failed attempt."""
        spec = self._plan.spec
        aliases = [alias for alias in self._plan.outputs if alias not in skip]
        if self._plan.outputs and not aliases:
            # Every output exists already; only the end of the run was not reported.
            return {}
        cancellation.check()
        with ExitStack() as stack:
            stack.enter_context(cancellation.limited(self._plan.process, spec.timeout))
            spark = stack.enter_context(
                self._sparks.session(conf=spec.spark_conf, profile=spec.compute)
            )
            cancellation.on_cancel(partial(interrupt, spark))
            drafts = self._reserve(stack, spark, aliases)
            with abandon_on_failure(self._workspace, spark, drafts, cancellation, self._log.say):
                self._compute(spark, drafts, cancellation)
                return self._publish(spark, drafts, cancellation)

    def _reserve(
        self, stack: ExitStack, spark: "SparkSession", aliases: Sequence[str]
    ) -> dict[str, Draft]:
        """Take all leases in a fixed order to avoid deadlocks, then reserve the tags."""
        outputs = self._plan.outputs
        names = sorted({outputs[alias].dataset for alias in aliases})
        leases = {
            name: stack.enter_context(
                self._workspace.leases.hold(table_lease(self._workspace, name), wait=MAX_WAIT)
            )
            for name in names
        }
        return {
            alias: reserve_draft(
                self._workspace,
                outputs[alias].dataset,
                self._plan.business_date,
                partition=self._plan.partition,
                run_id=self._run_id,
                mode=outputs[alias].mode,
                lease=leases[outputs[alias].dataset],
                shape=shape_of(self._workspace, self._plan, alias),
                writer=WriterSession(spark.session_id, self._plan.spec.compute),
            )
            for alias in aliases
        }

    def _compute(
        self, spark: "SparkSession", drafts: dict[str, Draft], cancellation: Cancellation
    ) -> None:
        work = self._work(spark, drafts, cancellation)
        results = engine_named(self._plan.spec.runs_on).run(work)
        self._explain(spark, {alias: results[alias] for alias in drafts})
        for alias, reserved in list(drafts.items()):
            cancellation.check()
            with self._step(f"write {alias}") as step:
                draft = drafts[alias] = self._write(spark, reserved, results[alias])
            with self._step(f"check {alias}", step.name):
                draft = drafts[alias] = audit_draft(self._workspace, spark, draft)
            step.rows = draft.rows
            rows = "1 row" if step.rows == 1 else f"{step.rows:,} rows"
            self._log.say(f"{draft.stored.dataset}: {rows}, checks passed")
        _count_steps(work.steps)

    def _explain(self, spark: "SparkSession", results: Outputs) -> None:
        """Keep Spark's plan of function outputs: only the plan shows their column lineage."""
        if needs_spark_plan(self._plan.spec):
            for alias, frame in results.items():
                if not isinstance(frame, InPlace):
                    self.explained[alias] = explain(spark, frame)

    def _write(self, spark: "SparkSession", draft: Draft, result: "DataFrame | InPlace") -> Draft:
        with reject_broken_contract(self._workspace, spark, draft):
            if isinstance(result, InPlace):
                return adopt_draft(self._workspace, spark, draft, result.rows, result.details)
            return write_draft(self._workspace, spark, draft, result)

    def _publish(
        self, spark: "SparkSession", drafts: Mapping[str, Draft], cancellation: Cancellation
    ) -> dict[str, PublishedOutput]:
        published = {}
        for alias, draft in drafts.items():
            with self._step(f"publish {alias}"):
                wait_out_outages(
                    partial(publish_draft, self._workspace, spark, draft), cancellation
                )
            location, written = draft.stored, draft.written
            size = written.size if written else None
            published[alias] = PublishedOutput(
                location.dataset, location.tag, draft.rows, size, draft.columns, draft.measures
            )
            self._log.say(f"{location.dataset}: version {location.tag} is ready")
        return published

    def _work(
        self, spark: "SparkSession", drafts: Mapping[str, Draft], cancellation: Cancellation
    ) -> Work:
        plan = self._plan
        site = self._workspace.site
        return Work(
            workspace=self._workspace,
            spark=spark,
            process=plan.process,
            spec=plan.spec,
            run_id=self._run_id,
            business_date=plan.business_date,
            partition=plan.partition,
            params=plan.params,
            inputs={alias: planned.versions for alias, planned in plan.inputs.items()},
            frames=self._frames(spark),
            drafts=drafts,
            folder=site.state_dir / "runs" / self._run_id,
            log=self._log,
            cancellation=cancellation,
            steps=self.steps,
        )

    def _frames(self, spark: "SparkSession") -> dict[str, "DataFrame"]:
        inputs = self._plan.inputs.items()
        frames = {alias: input_frame(self._workspace, spark, planned) for alias, planned in inputs}
        if not needs_spark_plan(self._plan.spec):
            return frames
        return {alias: mark_input(alias, frame) for alias, frame in frames.items()}

    @contextmanager
    def _step(self, name: str, *depends_on: str) -> Iterator[StepRecord]:
        step = StepRecord(name, depends_on)
        self.steps.append(step)
        try:
            yield step
        except BaseException:
            step.ended_at, step.status = clock.now(), "FAILED"
            raise
        step.ended_at, step.status = clock.now(), "SUCCESS"


def _count_steps(steps: Sequence[StepRecord]) -> None:
    """Read each step's row count, if Spark counted its rows."""
    for step in steps:
        if step.counter is not None:
            step.rows, step.status = step.counter.get.get("rows"), "SUCCESS"
        elif step.status == "STARTED":
            step.status = "SUCCESS"
