"""One attempt at a run: a session of its own, the leases of its outputs, and all or nothing."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from floe import clock
from floe.catalog.schemas import Column
from floe.execution.cancelling import Cancellation
from floe.execution.engines.contract import InPlace, Outputs, StepRecord, Work
from floe.execution.engines.registry import engine_named
from floe.execution.inputs import input_frame
from floe.execution.lineage import goes_by_plan, mark_input
from floe.execution.logs import RunLog
from floe.execution.outages import patiently
from floe.execution.planning import RunPlan
from floe.execution.shapes import shape_of
from floe.execution.spark.explaining import explain
from floe.execution.spark.session import interrupt
from floe.execution.sparks import Sparks
from floe.execution.versions.adopting import adopt_draft
from floe.execution.versions.drafts import (
    Draft,
    audit_draft,
    contract_kept,
    publish_draft,
    reserve_draft,
    write_draft,
)
from floe.execution.versions.letting_go import let_go_on_failure
from floe.execution.versions.tables import table_lease
from floe.execution.versions.writers import WriterSession
from floe.execution.workspace import Workspace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True)
class Made:
    """A version that an attempt published."""

    dataset: str
    tag: str
    rows: int | None
    size: int | None
    columns: Sequence[Column]
    measures: Mapping[str, Any] = field(default_factory=dict)

    def unknown(self) -> "Made":
        """The same, when nothing is known of its columns."""
        return replace(self, columns=())


class Attempt:
    """Does the work of a run once."""

    def __init__(
        self, workspace: Workspace, sparks: Sparks, plan: RunPlan, run_id: str, log: RunLog
    ) -> None:
        self._workspace, self._sparks, self._plan = workspace, sparks, plan
        self._run_id, self._log = run_id, log
        self.steps: list[StepRecord] = []
        self.explained: dict[str, str] = {}
        """What Spark said of the outputs that functions made."""

    def run(self, cancellation: Cancellation, *, skip: Sequence[str] = ()) -> Mapping[str, Made]:
        """Compute, write, check and publish; on any failure nothing is left to be seen."""
        spec = self._plan.spec
        aliases = [alias for alias in self._plan.outputs if alias not in skip]
        if self._plan.outputs and not aliases:
            # All was made before, and only the end of it was not reported.
            return {}
        cancellation.check()
        with ExitStack() as stack:
            stack.enter_context(cancellation.limited(self._plan.process, spec.timeout))
            spark = stack.enter_context(
                self._sparks.session(conf=spec.spark_conf, profile=spec.compute)
            )
            cancellation.on_cancel(partial(interrupt, spark))
            drafts = self._reserve(stack, spark, aliases)
            with let_go_on_failure(self._workspace, spark, drafts, cancellation, self._log.say):
                self._compute(spark, drafts, cancellation)
                return self._publish(spark, drafts, cancellation)

    def _reserve(
        self, stack: ExitStack, spark: "SparkSession", aliases: Sequence[str]
    ) -> dict[str, Draft]:
        """Take the leases of all tables in one order, then a tag in each."""
        outputs = self._plan.outputs
        names = sorted({outputs[alias].dataset for alias in aliases})
        leases = {
            name: stack.enter_context(
                self._workspace.leases.hold(table_lease(self._workspace, name), wait=LONGEST_WAIT)
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
            self._log.say(f"{draft.place.dataset}: {rows}, checks passed")
        _count_steps(work.steps)

    def _explain(self, spark: "SparkSession", results: Outputs) -> None:
        """Ask how functions made their outputs: nothing else shows where columns come from."""
        if goes_by_plan(self._plan.spec):
            for alias, frame in results.items():
                if not isinstance(frame, InPlace):
                    self.explained[alias] = explain(spark, frame)

    def _write(self, spark: "SparkSession", draft: Draft, result: "DataFrame | InPlace") -> Draft:
        with contract_kept(self._workspace, spark, draft):
            if isinstance(result, InPlace):
                return adopt_draft(self._workspace, spark, draft, result.rows, result.details)
            return write_draft(self._workspace, spark, draft, result)

    def _publish(
        self, spark: "SparkSession", drafts: Mapping[str, Draft], cancellation: Cancellation
    ) -> dict[str, Made]:
        made = {}
        for alias, draft in drafts.items():
            with self._step(f"publish {alias}"):
                patiently(partial(publish_draft, self._workspace, spark, draft), cancellation)
            place, written = draft.place, draft.written
            size = written.size if written else None
            made[alias] = Made(
                place.dataset, place.tag, draft.rows, size, draft.columns, draft.measures
            )
            self._log.say(f"{place.dataset}: version {place.tag} is ready")
        return made

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
            inputs={alias: one.versions for alias, one in plan.inputs.items()},
            frames=self._frames(spark),
            drafts=drafts,
            folder=site.state_dir / "runs" / self._run_id,
            log=self._log,
            cancellation=cancellation,
            steps=self.steps,
        )

    def _frames(self, spark: "SparkSession") -> dict[str, "DataFrame"]:
        inputs = self._plan.inputs.items()
        frames = {alias: input_frame(self._workspace, spark, one) for alias, one in inputs}
        if not goes_by_plan(self._plan.spec):
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
    """Read how many rows passed through each step, where Spark counted them."""
    for step in steps:
        if step.counter is not None:
            step.rows, step.status = step.counter.get.get("rows"), "SUCCESS"
        elif step.status == "STARTED":
            step.status = "SUCCESS"
