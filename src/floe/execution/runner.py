"""Run a process: plan, compute, write, check, publish, report; and try again where it helps."""

import traceback
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from floe import clock
from floe.catalog.datasets import get_dataset
from floe.catalog.runs import SUCCESS, find_run, note_run, record_steps
from floe.catalog.versions import READY, SUPERSEDED, list_of_run
from floe.errors import FloeError
from floe.execution.attempts import Attempt, Made
from floe.execution.cancelling import Cancellation, CancelledError
from floe.execution.holders import new_holder
from floe.execution.logs import Listener, RunLog, run_log_path
from floe.execution.outputs import made_by_other, made_of, report_outputs
from floe.execution.planning import RunPlan, Wish, plan_run
from floe.execution.reporting import Failure, ReportedInput, Reporter, RunFacts
from floe.execution.retrying import delay_before, is_worth_retrying
from floe.execution.sparks import Sparks
from floe.execution.versions.repair import finish_of_run
from floe.execution.workspace import Workspace
from floe.spec.identity import floe_process

if TYPE_CHECKING:
    from floe.execution.engines.contract import StepRecord
from floe.execution.failures import ProcessFailedError, reason_of

LONGEST_WAIT = timedelta(days=1)
LONGEST_SQL = 50_000


@dataclass(frozen=True)
class OutputResult:
    """A version that a run made."""

    alias: str
    dataset: str
    tag: str
    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class RunResult:
    """What became of a run."""

    run_id: str
    process: str
    key: str
    outputs: Sequence[OutputResult]
    seconds: float = 0.0
    log: str = ""
    attempts: int = 1
    repeated: bool = False
    """Whether the run had succeeded before, so that nothing was done."""


@dataclass(frozen=True)
class Circumstances:
    """How a run came about, and who looks on."""

    run_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    parent: str | None = None
    resumes: str | None = None
    skip: Sequence[str] = ()
    """Outputs that an earlier attempt has made already."""
    listener: Listener | None = None
    cancellation: Cancellation = field(default_factory=Cancellation)


def run_lease_name(workspace: Workspace, process: str, key: str | date | None) -> str:
    """Return the name of the lease that a run of a process holds for its partition or date."""
    process_key = floe_process(workspace.site.spec.name, process).key
    return f"run/{process_key}/{key or 'today'}"[:300]


def run_process(
    workspace: Workspace, sparks: Sparks, wish: Wish, how: Circumstances | None = None
) -> RunResult:
    """Run a process for a date. The same run id again writes nothing twice."""
    how = how or Circumstances()
    done = _done_before(workspace, how.run_id, wish.process)
    if done is not None:
        return done
    return _Run(workspace, sparks, wish, how).run()


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
            for version in list_of_run(session, run_id)
            if version.state in (READY, SUPERSEDED)
        ]
        key = run.partition_key or str(run.business_date)
    return RunResult(run_id, process, key, outputs, repeated=True)


class _Run:
    """One run of a process, from its plan to its report."""

    def __init__(
        self, workspace: Workspace, sparks: Sparks, wish: Wish, how: Circumstances
    ) -> None:
        self._workspace, self._sparks, self._wish, self._how = workspace, sparks, wish, how
        self._reporter = Reporter(workspace)
        self._started = clock.now()
        self._steps: list[StepRecord] = []
        self._explained: dict[str, str] = {}
        self._attempts = 0

    def run(self) -> RunResult:
        log = RunLog(
            run_log_path(self._workspace.site.state_dir, self._how.run_id), self._how.listener
        )
        try:
            with ExitStack() as held:
                self._take_turn(held)
                plan = plan_run(self._workspace, self._wish)
                return self._run_planned(plan, log)
        finally:
            log.close()

    def _take_turn(self, held: ExitStack) -> None:
        """Let one run of a process and date go on at a time."""
        spec = self._workspace.site.spec.processes.get(self._wish.process)
        if spec is None:
            return
        key = self._wish.partition or self._wish.business_date
        name = run_lease_name(self._workspace, self._wish.process, key)
        wait = LONGEST_WAIT if spec.concurrency == "wait" else None
        held.enter_context(self._workspace.leases.hold(name, wait=wait))

    def _run_planned(self, plan: RunPlan, log: RunLog) -> RunResult:
        facts = self._facts(plan)
        self._reporter.started(facts)
        self._note(plan, log)
        log.say(f"run {self._how.run_id} of {plan.process} for {plan.key}")
        try:
            made = self._try(plan, log)
        except (FloeError, KeyboardInterrupt, SystemExit) as error:
            self._fail(plan, facts, log, error)
            raise
        except Exception as error:
            self._fail(plan, facts, log, error)
            raise ProcessFailedError(plan.process, reason_of(error), log.path) from error
        result = self._result(plan, made, log)
        self._complete(plan, facts, made, result)
        log.say(f"done in {result.seconds:.1f} s")
        return result

    def _try(self, plan: RunPlan, log: RunLog) -> Mapping[str, Made]:
        """Attempt the work as often as it may help."""
        retry = plan.spec.retry
        while True:
            self._attempts += 1
            # One for each attempt: a timeout ends this one, and not those after it.
            cancellation = self._how.cancellation.child()
            attempt = Attempt(self._workspace, self._sparks, plan, self._how.run_id, log)
            try:
                made = self._made_before(plan)
                skip = [*self._how.skip, *made]
                # The end of this run speaks for all outputs, whichever run has made them.
                return {**made, **attempt.run(cancellation, skip=skip)}
            except Exception as error:
                again = is_worth_retrying(error) and self._attempts < retry.max_attempts
                if not again:
                    raise
                wait = delay_before(retry, self._attempts + 1)
                log.say(f"attempt {self._attempts} failed: {reason_of(error)}; again in {wait}")
                self._how.cancellation.wait(wait.total_seconds())
            finally:
                self._steps = attempt.steps
                self._explained |= attempt.explained

    def _made_before(self, plan: RunPlan) -> dict[str, Made]:
        """Return what this run or the one it resumes has published, or had announced."""
        found: dict[str, Made] = {}
        if self._how.resumes is not None:
            found |= made_by_other(self._workspace, plan, self._how.resumes)
        if self._attempts > 1:
            versions = finish_of_run(self._workspace, self._sparks, self._how.run_id)
            found |= made_of(self._workspace, plan, versions)
        return found

    def _facts(self, plan: RunPlan) -> RunFacts:
        inputs = [
            ReportedInput(one.dataset, tag) for one in plan.inputs.values() for tag in one.tags
        ]
        facet: dict[str, Any] = {
            "inputs": {alias: one.tags for alias, one in plan.inputs.items()},
            "params": {name: str(value) for name, value in plan.params.items()},
            "partition": plan.partition,
            "engine": plan.spec.runs_on,
            "holder": new_holder(),
        }
        if self._how.resumes is not None:
            facet["resumes"] = self._how.resumes
        sql = plan.spec.sql and self._workspace.site.read_text(plan.spec.sql)
        return RunFacts(
            self._how.run_id,
            plan.process,
            plan.business_date,
            facet,
            self._how.parent,
            inputs,
            sql,
        )

    def _note(self, plan: RunPlan, log: RunLog) -> None:
        with self._workspace.catalog.writing() as session:
            note_run(
                session,
                self._how.run_id,
                log_location=str(log.path.relative_to(self._workspace.site.root)),
                partition_key=plan.partition,
            )

    def _result(self, plan: RunPlan, made: Mapping[str, Made], log: RunLog) -> RunResult:
        outputs = [
            OutputResult(alias, one.dataset, one.tag, one.rows, one.size)
            for alias, one in made.items()
        ]
        seconds = (clock.now() - self._started).total_seconds()
        return RunResult(
            self._how.run_id,
            plan.process,
            plan.key,
            outputs,
            seconds,
            str(log.path),
            self._attempts,
        )

    def _complete(
        self, plan: RunPlan, facts: RunFacts, made: Mapping[str, Made], result: RunResult
    ) -> None:
        outputs = report_outputs(self._workspace, plan, made, self._explained)
        counted = {
            "rowsIn": sum(one.rows or 0 for one in plan.inputs.values()),
            "rowsOut": sum(one.rows or 0 for one in made.values()),
            "bytesOut": sum(one.size or 0 for one in made.values()),
            "seconds": round(result.seconds, 3),
            "attempts": self._attempts,
            "spark": {alias: dict(one.measures) for alias, one in made.items() if one.measures},
        }
        self._reporter.completed(replace(facts, facet={**facts.facet, **counted}), outputs)
        self._record_steps(None)

    def _failing_sql(self, plan: RunPlan) -> dict[str, str | None] | None:
        """Return the SQL that was being run, and the step that it belongs to."""
        read = self._workspace.site.read_text
        if plan.spec.sql is not None:
            return {"step": None, "sql": read(plan.spec.sql)[:LONGEST_SQL]}
        at_work = next((step.name for step in self._steps if step.ended_at is None), None)
        for step in plan.spec.steps:
            if step.name == at_work and step.sql is not None:
                return {"step": step.name, "sql": read(step.sql)[:LONGEST_SQL]}
        statements = ";\n".join(map(read, plan.spec.statements))
        return {"step": None, "sql": statements[:LONGEST_SQL]} if statements else None

    def _fail(self, plan: RunPlan, facts: RunFacts, log: RunLog, error: BaseException) -> None:
        message = reason_of(error)
        log.say(f"failed: {message}")
        stopped = isinstance(error, KeyboardInterrupt | CancelledError)
        trace = "" if isinstance(error, FloeError) else traceback.format_exc()
        report = self._reporter.aborted if stopped else self._reporter.failed
        facet = {**facts.facet, "attempts": self._attempts}
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
            record_steps(session, self._how.run_id, rows)
