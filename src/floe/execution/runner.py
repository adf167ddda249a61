"""Run a process: plan, compute, write, check, publish, report; retry if useful."""

import traceback
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from floe import clock
from floe.catalog.datasets import get_dataset
from floe.catalog.runs import SUCCESS, annotate_run, find_run, record_steps
from floe.catalog.version_queries import list_run_versions
from floe.catalog.versions import READY, SUPERSEDED
from floe.errors import FloeError
from floe.execution.attempts import Attempt
from floe.execution.cancellation import Cancellation, CancelledError
from floe.execution.failures import delay_before, is_worth_retrying
from floe.execution.os_processes import new_holder
from floe.execution.outputs import (
    PublishedOutput,
    find_published,
    find_published_by,
    report_outputs,
)
from floe.execution.planning import RunOptions, RunPlan, plan_run
from floe.execution.reporting import (
    Failure,
    Listener,
    ReportedInput,
    Reporter,
    RunFacts,
    RunLog,
    run_log_path,
)
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.repair import finish_run_versions
from floe.execution.workspace import Workspace
from floe.spec.identity import floe_process

if TYPE_CHECKING:
    from floe.execution.engines.contract import StepRecord
from floe.execution.failures import ProcessFailedError, reason_of

MAX_WAIT = timedelta(days=1)
MAX_SQL = 50_000


@dataclass(frozen=True)
class OutputResult:
    """A version that a run published."""

    alias: str
    dataset: str
    tag: str
    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class RunResult:
    """How a run ended."""

    run_id: str
    process: str
    key: str
    outputs: Sequence[OutputResult]
    seconds: float = 0.0
    log: str = ""
    attempts: int = 1
    repeated: bool = False
    """Whether the run id had already succeeded, so that nothing was done."""


@dataclass(frozen=True)
class RunContext:
    """A run's id, its parent, the run it resumes, and who follows it."""

    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    parent: str | None = None
    resumes: str | None = None
    skip: Sequence[str] = ()
    """Aliases of outputs that an earlier attempt already published."""
    listener: Listener | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)


def run_lease_name(workspace: Workspace, process: str, key: str | date | None) -> str:
    """Return the name of the lease that a run holds for its partition or date."""
    process_key = floe_process(workspace.site.spec.name, process).key
    return f"run/{process_key}/{key or 'today'}"[:300]


def run_process(
    workspace: Workspace,
    sparks: SparkSessions,
    options: RunOptions,
    context: RunContext | None = None,
) -> RunResult:
    """Run a process for a date. Does nothing if this run id has already succeeded."""
    context = context or RunContext()
    done = _done_before(workspace, context.run_id, options.process)
    if done is not None:
        return done
    return _Run(workspace, sparks, options, context).run()


def _done_before(workspace: Workspace, run_id: str, process: str) -> RunResult | None:
    with workspace.catalog.reading() as session:
        run = find_run(session, run_id)
        if run is None or run.status != SUCCESS:
            return None
        outputs = [
            OutputResult(
                "",
                get_dataset(session, version.dataset_id).name,
                version.version_tag,
                version.row_count,
                version.size_bytes,
            )
            for version in list_run_versions(session, run_id)
            if version.state in (READY, SUPERSEDED)
        ]
        key = run.partition_key or str(run.business_date)
    return RunResult(run_id, process, key, outputs, repeated=True)


class _Run:
    """One run of a process, from its plan to its report."""

    def __init__(
        self, workspace: Workspace, sparks: SparkSessions, options: RunOptions, context: RunContext
    ) -> None:
        self._workspace, self._sparks, self._options, self._context = (
            workspace,
            sparks,
            options,
            context,
        )
        self._reporter = Reporter(workspace)
        self._started = clock.now()
        self._steps: list[StepRecord] = []
        self._explained: dict[str, str] = {}
        self._attempts = 0

    def run(self) -> RunResult:
        log = RunLog(
            run_log_path(self._workspace.site.state_dir, self._context.run_id),
            self._context.listener,
        )
        try:
            with ExitStack() as held:
                self._hold_run_lease(held)
                plan = plan_run(self._workspace, self._options)
                return self._run_planned(plan, log)
        finally:
            log.close()

    def _hold_run_lease(self, held: ExitStack) -> None:
        """Take the run lease: one run at a time per process and date."""
        spec = self._workspace.site.spec.processes.get(self._options.process)
        if spec is None:
            return
        key = self._options.partition or self._options.business_date
        name = run_lease_name(self._workspace, self._options.process, key)
        wait = MAX_WAIT if spec.concurrency == "wait" else None
        held.enter_context(self._workspace.leases.hold(name, wait=wait))

    def _run_planned(self, plan: RunPlan, log: RunLog) -> RunResult:
        facts = self._facts(plan)
        self._reporter.started(facts)
        self._record_log(plan, log)
        log.say(f"run {self._context.run_id} of {plan.process} for {plan.key}")
        try:
            outputs = self._attempt(plan, log)
        except (FloeError, KeyboardInterrupt, SystemExit) as error:
            self._fail(plan, facts, log, error)
            raise
        except Exception as error:
            self._fail(plan, facts, log, error)
            raise ProcessFailedError(plan.process, reason_of(error), log.path) from error
        result = self._result(plan, outputs, log)
        self._complete(plan, facts, outputs, result)
        log.say(f"done in {result.seconds:.1f} s")
        return result

    def _attempt(self, plan: RunPlan, log: RunLog) -> Mapping[str, PublishedOutput]:
        """Attempt the work, and retry as declared."""
        retry = plan.spec.retry
        while True:
            self._attempts += 1
            # One per attempt, so that a timeout does not cancel later attempts.
            cancellation = self._context.cancellation.child()
            attempt = Attempt(self._workspace, self._sparks, plan, self._context.run_id, log)
            try:
                published = self._published_before(plan)
                skip = [*self._context.skip, *published]
                # The run reports all outputs, including those that an earlier run published.
                return {**published, **attempt.run(cancellation, skip=skip)}
            except Exception as error:
                again = is_worth_retrying(error) and self._attempts < retry.max_attempts
                if not again:
                    raise
                wait = delay_before(retry, self._attempts + 1)
                log.say(f"attempt {self._attempts} failed: {reason_of(error)}; retrying in {wait}")
                self._context.cancellation.wait(wait.total_seconds())
            finally:
                self._steps = attempt.steps
                self._explained |= attempt.explained

    def _published_before(self, plan: RunPlan) -> dict[str, PublishedOutput]:
        """Return outputs that the resumed run or an earlier attempt published."""
        outputs: dict[str, PublishedOutput] = {}
        if self._context.resumes is not None:
            outputs |= find_published_by(self._workspace, plan, self._context.resumes)
        if self._attempts > 1:
            versions = finish_run_versions(self._workspace, self._sparks, self._context.run_id)
            outputs |= find_published(self._workspace, plan, versions)
        return outputs

    def _facts(self, plan: RunPlan) -> RunFacts:
        inputs = [
            ReportedInput(planned.dataset, tag)
            for planned in plan.inputs.values()
            for tag in planned.tags
        ]
        facet: dict[str, Any] = {
            "inputs": {alias: planned.tags for alias, planned in plan.inputs.items()},
            "params": {name: str(value) for name, value in plan.params.items()},
            "partition": plan.partition,
            "engine": plan.spec.runs_on,
            "holder": new_holder(),
        }
        if self._context.resumes is not None:
            facet["resumes"] = self._context.resumes
        sql = plan.spec.sql and self._workspace.site.read_text(plan.spec.sql)
        return RunFacts(
            self._context.run_id,
            plan.process,
            plan.business_date,
            facet,
            self._context.parent,
            inputs,
            sql,
        )

    def _record_log(self, plan: RunPlan, log: RunLog) -> None:
        with self._workspace.catalog.writing() as session:
            annotate_run(
                session,
                self._context.run_id,
                log_location=str(log.path.relative_to(self._workspace.site.root)),
                partition_key=plan.partition,
            )

    def _result(
        self, plan: RunPlan, published: Mapping[str, PublishedOutput], log: RunLog
    ) -> RunResult:
        outputs = [
            OutputResult(alias, output.dataset, output.tag, output.rows, output.size)
            for alias, output in published.items()
        ]
        seconds = (clock.now() - self._started).total_seconds()
        return RunResult(
            self._context.run_id,
            plan.process,
            plan.key,
            outputs,
            seconds,
            str(log.path),
            self._attempts,
        )

    def _complete(
        self,
        plan: RunPlan,
        facts: RunFacts,
        published: Mapping[str, PublishedOutput],
        result: RunResult,
    ) -> None:
        outputs = report_outputs(self._workspace, plan, published, self._explained)
        counted = {
            "rowsIn": sum(planned.rows or 0 for planned in plan.inputs.values()),
            "rowsOut": sum(output.rows or 0 for output in published.values()),
            "bytesOut": sum(output.size or 0 for output in published.values()),
            "seconds": round(result.seconds, 3),
            "attempt": self._attempts,
            "spark": {
                alias: dict(output.measures)
                for alias, output in published.items()
                if output.measures
            },
        }
        self._reporter.completed(replace(facts, facet={**facts.facet, **counted}), outputs)
        self._record_steps(None)

    def _failing_sql(self, plan: RunPlan) -> dict[str, str | None] | None:
        """Return the SQL that failed, and its step."""
        read = self._workspace.site.read_text
        if plan.spec.sql is not None:
            return {"step": None, "sql": read(plan.spec.sql)[:MAX_SQL]}
        at_work = next((step.name for step in self._steps if step.ended_at is None), None)
        for step in plan.spec.steps:
            if step.name == at_work and step.sql is not None:
                return {"step": step.name, "sql": read(step.sql)[:MAX_SQL]}
        statements = ";\n".join(map(read, plan.spec.statements))
        return {"step": None, "sql": statements[:MAX_SQL]} if statements else None

    def _fail(self, plan: RunPlan, facts: RunFacts, log: RunLog, error: BaseException) -> None:
        message = reason_of(error)
        log.say(f"failed: {message}")
        stopped = isinstance(error, KeyboardInterrupt | CancelledError)
        trace = "" if isinstance(error, FloeError) else traceback.format_exc()
        report = self._reporter.aborted if stopped else self._reporter.failed
        facet = {**facts.facet, "attempt": self._attempts}
        if failing := self._failing_sql(plan):
            facet["failed"] = failing
        report(replace(facts, facet=facet), Failure(message, trace))
        self._record_steps(clock.now())

    def _record_steps(self, failed_at: datetime | None) -> None:
        rows = [
            {
                "step_name": step.name,
                "depends_on_json": list(step.depends_on),
                "status": step.status if step.ended_at or not failed_at else "FAILED",
                "start_ts": step.started_at,
                "end_ts": step.ended_at or failed_at,
                "row_count": step.rows,
            }
            for step in self._steps
        ]
        with self._workspace.catalog.writing() as session:
            record_steps(session, self._context.run_id, rows)
