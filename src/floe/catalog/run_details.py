"""Everything the catalog knows about one run: how it ended and why, what it read and made.

The same for every kind of run: floe's processes, dbt models, Python assets and foreign jobs. What
a kind of run does not report is left out.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from floe.catalog.edges import PROCESS
from floe.catalog.runs import (
    InputRow,
    OutputRow,
    RunView,
    StepRow,
    describe_inputs,
    describe_outputs,
    describe_run,
    describe_steps,
    failure_of,
    reason_of_run,
)
from floe.catalog.tables import (
    Dataset,
    DatasetVersion,
    ObservedFacet,
    Process,
    ProcessRun,
    QualityCheckDef,
    QualityCheckResult,
)

MOST_CHILDREN, MOST_CHECKS, MOST_REASONS = 200, 200, 500
_LINE = re.compile(r"\bline[ :]+(\d+)\b", re.IGNORECASE)


class RelatedRun(NamedTuple):
    """A run that another one started, or that started it."""

    run_uuid: str
    process_key: str
    business_date: date | None
    partition_key: str | None
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    reason: str | None


class CheckOutcome(NamedTuple):
    """The verdict of a check on what a run made, with samples of the rows that failed."""

    full_name: str
    version_tag: str | None
    name: str
    severity: str
    status: str
    failed_rows: int | None
    message: str | None
    samples: Sequence[Any]


class RunSql(NamedTuple):
    """The SQL of a run; of one that failed, the line that its error names."""

    text: str
    step: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class RunDetails:
    """One run with all that belongs to it."""

    run: RunView
    reason: str | None
    trace: str
    seconds: float | None
    attempts: int
    where: str
    sql: RunSql | None
    parent: RelatedRun | None
    children: Sequence[RelatedRun]
    inputs: Sequence[InputRow]
    outputs: Sequence[OutputRow]
    steps: Sequence[StepRow]
    checks: Sequence[CheckOutcome]


def get_run_details(session: Session, run_uuid: str) -> RunDetails:
    """Return everything that is known about a run."""
    run = describe_run(session, run_uuid)
    failure = failure_of(run.facets_json)
    children = list_related(session, ProcessRun.parent_run_uuid == run.run_uuid)
    inputs = describe_inputs(session, run.run_id)
    outputs = describe_outputs(session, run.run_uuid)
    failed = next((one for one in children if one.reason), None)
    reason = reason_of_run(run.status, run.facets_json, run.parent_run_uuid)
    if not reason and failed is not None and run.saw_failure:
        reason = f"{failed.process_key} failed: {failed.reason}"
    return RunDetails(
        run=run,
        reason=reason,
        trace=failure.trace,
        seconds=_seconds(run.start_ts, run.end_ts),
        attempts=_attempts(run),
        where=_where(run.facets_json),
        sql=_sql(session, run, reason),
        parent=_parent(session, run.parent_run_uuid),
        children=children,
        inputs=inputs,
        outputs=outputs,
        steps=describe_steps(session, run.run_id),
        checks=_checks(
            session,
            run.run_id,
            [one.dataset_version_id for one in outputs],
            [one.dataset_version_id for one in inputs if one.dataset_version_id is not None],
        ),
    )


def list_related(session: Session, condition: Any) -> list[RelatedRun]:
    """Return runs by a condition, the oldest first, each with why it failed."""
    rows: Any = session.execute(
        select(
            ProcessRun.run_uuid,
            Process.process_key,
            ProcessRun.business_date,
            ProcessRun.partition_key,
            ProcessRun.status,
            ProcessRun.start_ts,
            ProcessRun.end_ts,
            ProcessRun.facets_json,
            ProcessRun.parent_run_uuid,
        )
        .join(Process, Process.process_id == ProcessRun.process_id)
        .where(condition)
        .order_by(ProcessRun.run_id)
        .limit(MOST_CHILDREN)
    )
    return [
        RelatedRun._make(
            (*row[:-2], reason_of_run(row.status, row.facets_json, row.parent_run_uuid))
        )
        for row in rows
    ]


def list_reasons(session: Session, run_ids: Sequence[int]) -> dict[int, str]:
    """Return why runs failed, by number; those that do not say are left out."""
    rows: Any = session.execute(
        select(
            ProcessRun.run_id,
            ProcessRun.status,
            ProcessRun.facets_json,
            ProcessRun.parent_run_uuid,
        ).where(ProcessRun.run_id.in_(list(run_ids[:MOST_REASONS])))
    )
    found = {number: reason_of_run(*rest) for number, *rest in rows}
    return {number: reason for number, reason in found.items() if reason}


def failing_line(message: str) -> int | None:
    """Return the line that an error message names: Spark, dbt and databases all write `line 3`."""
    found = _LINE.search(message)
    return int(found[1]) if found else None


def _parent(session: Session, run_uuid: str | None) -> RelatedRun | None:
    if run_uuid is None:
        return None
    found = list_related(session, ProcessRun.run_uuid == run_uuid)
    return found[0] if found else None


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _own(facets: Any) -> dict[str, Any]:
    own = facets.get("floe") if isinstance(facets, dict) else None
    return own if isinstance(own, dict) else {}


def _attempts(run: RunView) -> int:
    noted = _own(run.facets_json).get("attempts")
    return max(run.attempt, noted) if isinstance(noted, int) else run.attempt


def _where(facets: Any) -> str:
    """Say where a run ran: engine, host and process, or the step of a Dagster run."""
    own, parts = _own(facets), []
    engine = facets.get("processing_engine") if isinstance(facets, dict) else None
    if isinstance(own.get("engine"), str):
        parts.append(own["engine"])
    elif isinstance(engine, dict):
        parts.append(" ".join(str(engine[key]) for key in ("name", "version") if engine.get(key)))
    holder = own.get("holder")
    if isinstance(holder, str) and holder.count("/") >= 1:
        host, pid = holder.split("/")[:2]
        parts.append(f"host {host}, process {pid}")
    dagster = own.get("dagster")
    if isinstance(dagster, dict) and dagster.get("run"):
        step = f", step {dagster['step']}" if dagster.get("step") else ""
        parts.append(f"Dagster run {dagster['run']}{step}")
    return "; ".join(filter(None, parts))


def _sql(session: Session, run: RunView, reason: str | None) -> RunSql | None:
    """Return the SQL that the run noted when it failed, else the newest of its process."""
    failed = _own(run.facets_json).get("failed")
    line = failing_line(reason) if reason else None
    if isinstance(failed, dict) and isinstance(failed.get("sql"), str):
        return RunSql(failed["sql"], failed.get("step"), line)
    body = session.scalar(
        select(ObservedFacet.body).where(
            ObservedFacet.owner_type == PROCESS,
            ObservedFacet.owner_id == run.process_id,
            ObservedFacet.facet == "sql",
        )
    )
    if body is None:
        return None
    facet = json.loads(body)
    text = facet.get("query") if isinstance(facet, dict) else None
    return RunSql(text, None, line) if isinstance(text, str) else None


def _checks(
    session: Session, run_id: int, made: Sequence[int], read: Sequence[int]
) -> list[CheckOutcome]:
    """Return the verdicts on what a run made, and its own verdicts on what it read."""
    rows: Any = session.execute(
        select(
            Dataset.full_name,
            DatasetVersion.version_tag,
            QualityCheckDef.name,
            QualityCheckDef.severity,
            QualityCheckResult.status,
            QualityCheckResult.failed_rows,
            QualityCheckResult.detail_json,
        )
        .join(QualityCheckDef, QualityCheckDef.qdef_id == QualityCheckResult.qdef_id)
        .join(Dataset, Dataset.dataset_id == QualityCheckDef.dataset_id)
        .outerjoin(
            DatasetVersion,
            DatasetVersion.dataset_version_id == QualityCheckResult.dataset_version_id,
        )
        .where(
            # By version, because an index leads there and none to the run.
            QualityCheckResult.dataset_version_id.in_([*made, *read]),
            or_(
                QualityCheckResult.run_id == run_id,
                QualityCheckResult.dataset_version_id.in_(list(made)),
            ),
        )
        .order_by(QualityCheckResult.qres_id)
        .limit(MOST_CHECKS)
    )
    return [_outcome(row) for row in rows]


def _outcome(row: Any) -> CheckOutcome:
    detail = row.detail_json if isinstance(row.detail_json, dict) else {}
    samples = detail.get("samples")
    listed = samples if isinstance(samples, list) else []
    return CheckOutcome._make((*row[:-1], detail.get("message"), listed))
