"""All details of one run: result, reason, inputs, outputs, steps and checks.

The same for every kind of run: floe's processes, dbt models, Python assets and foreign jobs. What
a kind of run does not report is left out.
"""

import json
import re
from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

from msgspec import Struct, structs
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from floe.catalog.edges import PROCESS
from floe.catalog.runs import RunDetail, describe_run, failure_of, reason_of_run
from floe.catalog.tables import (
    Dataset,
    DatasetVersion,
    ObservedFacet,
    Process,
    ProcessRun,
    QualityCheckDef,
    QualityCheckResult,
)

MAX_CHILDREN, MAX_CHECKS, MAX_REASONS = 200, 200, 500
_LINE = re.compile(r"\bline[ :]+(\d+)\b", re.IGNORECASE)


class RelatedRun(Struct):
    """A parent or child of a run."""

    run_uuid: str
    process_key: str
    business_date: date | None
    partition_key: str | None
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    reason: str | None


class CheckOutcome(Struct):
    """The result of a check on a run's input or output, with samples of failed rows."""

    full_name: str
    version_tag: str | None
    name: str
    severity: str
    status: str
    failed_rows: int | None
    message: str | None
    samples: Sequence[Any]


class RunSql(Struct):
    """The SQL of a run, with the line that its error message names."""

    text: str
    step: str | None = None
    line: int | None = None


class RunStory(RunDetail):
    """Everything about a run: also its SQL, checks, parent and children."""

    trace: str | None = None
    seconds: float | None = None
    where: str | None = None
    sql: RunSql | None = None
    parent: RelatedRun | None = None
    children: Sequence[RelatedRun] = ()
    checks: Sequence[CheckOutcome] = ()


def get_run_story(session: Session, run_uuid: str) -> RunStory:
    """Return everything about a run."""
    run = describe_run(session, run_uuid)
    story = RunStory(**structs.asdict(run))
    story.children = list_related(session, ProcessRun.parent_run_uuid == run.run_uuid)
    failed = next((child for child in story.children if child.reason), None)
    if not story.reason and failed is not None and run.saw_failure:
        story.reason = f"{failed.process_key} failed: {failed.reason}"
    story.trace = failure_of(run.facets_json).trace or None
    story.seconds = _seconds(run.start_ts, run.end_ts)
    story.where = _where(run.facets_json) or None
    story.sql = _sql(session, run, story.reason)
    story.parent = _parent(session, run.parent_run_uuid)
    story.checks = _checks(
        session,
        run.run_id,
        [version.dataset_version_id for version in run.outputs],
        [
            version.dataset_version_id
            for version in run.inputs
            if version.dataset_version_id is not None
        ],
    )
    return story


def list_related(session: Session, condition: Any) -> list[RelatedRun]:
    """Return the runs that meet a condition, oldest first, with their failure reason."""
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
        .limit(MAX_CHILDREN)
    )
    return [
        RelatedRun(
            run_uuid=row.run_uuid,
            process_key=row.process_key,
            business_date=row.business_date,
            partition_key=row.partition_key,
            status=row.status,
            start_ts=row.start_ts,
            end_ts=row.end_ts,
            reason=reason_of_run(row.status, row.facets_json, row.parent_run_uuid),
        )
        for row in rows
    ]


def list_reasons(session: Session, run_ids: Sequence[int]) -> dict[int, str]:
    """Return the failure reasons of runs by id; runs without a reason are left out."""
    rows: Any = session.execute(
        select(
            ProcessRun.run_id,
            ProcessRun.status,
            ProcessRun.facets_json,
            ProcessRun.parent_run_uuid,
        ).where(ProcessRun.run_id.in_(list(run_ids[:MAX_REASONS])))
    )
    reasons = {run_id: reason_of_run(*rest) for run_id, *rest in rows}
    return {run_id: reason for run_id, reason in reasons.items() if reason}


def failing_line(message: str) -> int | None:
    """Return the line number in an error message: `line 3`, as most engines write it."""
    match = _LINE.search(message)
    return int(match[1]) if match else None


def _parent(session: Session, run_uuid: str | None) -> RelatedRun | None:
    if run_uuid is None:
        return None
    parents = list_related(session, ProcessRun.run_uuid == run_uuid)
    return parents[0] if parents else None


def _seconds(start: datetime | None, end: datetime | None) -> float | None:
    return None if start is None or end is None else (end - start).total_seconds()


def _floe_facet(facets: Any) -> dict[str, Any]:
    own = facets.get("floe") if isinstance(facets, dict) else None
    return own if isinstance(own, dict) else {}


def _where(facets: Any) -> str:
    """Describe where a run ran: engine, host and process, or Dagster run and step."""
    own, parts = _floe_facet(facets), []
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


def _sql(session: Session, run: RunDetail, reason: str | None) -> RunSql | None:
    """Return the SQL that the run recorded on failure, else its process's newest."""
    failed = _floe_facet(run.facets_json).get("failed")
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
    session: Session, run_id: int, written: Sequence[int], read: Sequence[int]
) -> list[CheckOutcome]:
    """Return all check results of a run's outputs, and its own results of its inputs."""
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
            # Filter by version, because there is an index on it but none on the run.
            QualityCheckResult.dataset_version_id.in_([*written, *read]),
            or_(
                QualityCheckResult.run_id == run_id,
                QualityCheckResult.dataset_version_id.in_(list(written)),
            ),
        )
        .order_by(QualityCheckResult.qres_id)
        .limit(MAX_CHECKS)
    )
    return [_outcome(row) for row in rows]


def _outcome(row: Any) -> CheckOutcome:
    detail = row.detail_json if isinstance(row.detail_json, dict) else {}
    samples = detail.get("samples")
    listed = samples if isinstance(samples, list) else []
    return CheckOutcome(
        full_name=row.full_name,
        version_tag=row.version_tag,
        name=row.name,
        severity=row.severity,
        status=row.status,
        failed_rows=row.failed_rows,
        message=detail.get("message"),
        samples=listed,
    )
