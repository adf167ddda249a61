"""Tell the catalog what was observed, through the door that everybody uses."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from floe.catalog.rejecting import record_rejected, reject_ready
from floe.catalog.schemas import store_schemas
from floe.events.ingest import MOST_IN_GROUP, read_claim
from floe.execution.workspace import Workspace
from floe.orchestration.observing.columns import Tracer
from floe.orchestration.observing.knowledge import Knowledge
from floe.orchestration.observing.reports import Read, Report, Written
from floe.orchestration.observing.translating import CHECK
from floe.orchestration.observing.wire import body_of
from floe.spec.identity import ProcessId

if TYPE_CHECKING:
    from floe.catalog.recording import EventClaim

ACTOR = "floe_observer"


def tell(
    workspace: Workspace, knowledge: Knowledge, job: ProcessId, reports: Sequence[Report]
) -> None:
    """Tell of a Dagster run, in order; all of it is committed when this returns."""
    teller = _Teller(workspace, job, reports)
    tests = frozenset(knowledge.tests.values())
    for report in reports:
        # What is no good is rejected before it is told of, so that nothing starts from it.
        for one in report.written:
            if one.rejected:
                teller.flush()
                _reject(workspace, report, one)
        teller.add(report)
        if _fails_test(report) and report.run.process in tests:
            teller.flush()
            for read in report.reads:
                _reject_read(workspace, read)
    teller.flush()


class _Teller:
    """Gathers events, so that many share a transaction."""

    def __init__(self, workspace: Workspace, job: ProcessId, reports: Sequence[Report]) -> None:
        self._workspace, self._job = workspace, job
        self._tracer = Tracer(workspace, reports)
        self._claims: list[EventClaim] = []

    def add(self, report: Report) -> None:
        """Let an event wait for others."""
        report, columns = self._tracer.trace(report)
        body = body_of(report, self._workspace.lake, self._job, columns)
        self._claims.append(read_claim(body))
        if len(self._claims) >= MOST_IN_GROUP:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        claims, self._claims = self._claims, []
        if claims:
            for wrong in self._workspace.door.submit(claims).result().values():
                raise wrong


def _fails_test(report: Report) -> bool:
    return report.run.job_type == CHECK and report.kind == "FAIL"


def _reject(workspace: Workspace, report: Report, made: Written) -> None:
    """Note a version that is in the lake already, and that its tests found to be no good."""
    with workspace.catalog.writing() as session:
        record_rejected(
            session,
            workspace.dataset_id(made.dataset, session),
            report.run.business_date,
            made.tag,
            reason=made.rejected,
            actor=ACTOR,
            row_count=made.rows,
            size_bytes=made.size,
            schema_hash=store_schemas(session, [made.columns])[0] if made.columns else None,
            produced_by_run_id=report.run.run_id,
        )


def _reject_read(workspace: Workspace, read: Read) -> None:
    """A test that is run again later can find a version no good that was READY."""
    failed = [one.name for one in read.verdicts if one.strict and not one.passed]
    if not read.tag or not failed:
        return
    with workspace.catalog.writing() as session:
        number = workspace.dataset_id(read.dataset, session)
        reason = "; ".join(f"{name} failed" for name in failed)
        reject_ready(session, number, read.tag, reason=reason, actor=ACTOR)
