"""Runs: executions of processes, what they read, and their steps."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from typing import Any, TypedDict, Unpack

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import RunNotFoundError, WrongStateError
from floe.catalog.tables import Dataset, DatasetVersion, ProcessRun, RunInput, RunStep

STARTED, SUCCESS, FAILED, CANCELLED = "STARTED", "SUCCESS", "FAILED", "CANCELLED"
ENDED = frozenset({SUCCESS, FAILED, CANCELLED})


class RunFields(TypedDict, total=False):
    """What can be said of a run when it starts."""

    business_date: date | None
    partition_key: str | None
    parent_run_uuid: str | None
    attempt: int
    log_location: str | None
    historical: bool
    facets_json: Any


def start_run(
    session: Session, run_uuid: str, process_id: int, **values: Unpack[RunFields]
) -> ProcessRun:
    """Open a run. The same UUID again returns the run as it is: a retry opens nothing twice."""
    known = session.scalar(select(ProcessRun).where(ProcessRun.run_uuid == run_uuid))
    if known is not None:
        return known
    values.setdefault("attempt", 1)
    values.setdefault("historical", False)
    moment = clock.now()
    run = ProcessRun(
        run_uuid=run_uuid,
        process_id=process_id,
        status=STARTED,
        start_ts=moment,
        saw_success=False,
        saw_failure=False,
        created_at=moment,
        **values,
    )
    session.add(run)
    session.flush()
    return run


def finish_run(session: Session, run: ProcessRun, status: str) -> None:
    """End a run. One that has ended keeps its end."""
    if status not in ENDED:
        raise WrongStateError(f"Run {run.run_uuid}", run.status, status, ENDED)
    if run.status in ENDED:
        return
    run.status, run.end_ts = status, clock.now()
    run.saw_success, run.saw_failure = status == SUCCESS, status != SUCCESS


def get_run(session: Session, run_uuid: str) -> ProcessRun:
    """Return the run with this UUID."""
    run = session.scalar(select(ProcessRun).where(ProcessRun.run_uuid == run_uuid))
    if run is None:
        raise RunNotFoundError(run_uuid)
    return run


def list_runs(
    session: Session,
    *,
    process_id: int | None = None,
    statuses: Iterable[str] = (),
    business_date: date | None = None,
    since: datetime | None = None,
    before_id: int | None = None,
    limit: int = 100,
) -> Sequence[ProcessRun]:
    """Return runs, the newest first, from before one on."""
    query = select(ProcessRun)
    if process_id is not None:
        query = query.where(ProcessRun.process_id == process_id)
    if wanted := list(statuses):
        query = query.where(ProcessRun.status.in_(wanted))
    if business_date is not None:
        query = query.where(ProcessRun.business_date == business_date)
    if since is not None:
        query = query.where(ProcessRun.start_ts >= since)
    if before_id is not None:
        query = query.where(ProcessRun.run_id < before_id)
    return session.scalars(query.order_by(ProcessRun.run_id.desc()).limit(limit)).all()


def last_successful_run(session: Session, full_name: str) -> ProcessRun | None:
    """Return the newest successful run that produced a dataset."""
    return session.scalars(
        select(ProcessRun)
        .join(DatasetVersion, DatasetVersion.produced_by_run_id == ProcessRun.run_uuid)
        .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
        .where(Dataset.full_name == full_name, ProcessRun.status == SUCCESS)
        .order_by(ProcessRun.end_ts.desc(), ProcessRun.run_id.desc())
        .limit(1)
    ).first()


def record_inputs(session: Session, run: ProcessRun, versions: Iterable[DatasetVersion]) -> None:
    """Write which versions a run read. What is written already stays."""
    known = {(row.dataset_id, row.version_tag) for row in list_inputs(session, run.run_id)}
    rows = [
        {
            "run_id": run.run_id,
            "dataset_id": version.dataset_id,
            "version_tag": version.version_tag,
            "dataset_version_id": version.dataset_version_id,
        }
        for version in versions
        if (version.dataset_id, version.version_tag) not in known
    ]
    if rows:
        session.execute(insert(RunInput), rows)


def list_inputs(session: Session, run_id: int) -> Sequence[RunInput]:
    """Return what a run read."""
    return session.scalars(select(RunInput).where(RunInput.run_id == run_id)).all()


def list_steps(session: Session, run_id: int) -> Sequence[RunStep]:
    """Return the steps of a run in their order."""
    return session.scalars(
        select(RunStep).where(RunStep.run_id == run_id).order_by(RunStep.step_order)
    ).all()
