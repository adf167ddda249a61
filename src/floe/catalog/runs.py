"""Runs: executions of processes, what they read, and their steps."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import Date, String, and_, bindparam, delete, exists, insert, or_, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import RunNotFoundError, WrongStateError
from floe.catalog.questions import Question
from floe.catalog.tables import Dataset, DatasetVersion, Process, ProcessRun, RunInput, RunStep

STARTED, SUCCESS, FAILED, CANCELLED = "STARTED", "SUCCESS", "FAILED", "CANCELLED"
# Its parent run has ended, and it never reported an end itself. A real end still replaces it.
LOST = "LOST"
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


class RunRow(NamedTuple):
    """A run, as a list shows it."""

    run_id: int
    run_uuid: str
    process_id: int
    process_key: str
    business_date: date | None
    partition_key: str | None
    start_ts: datetime | None
    end_ts: datetime | None
    status: str
    attempt: int
    parent_run_uuid: str | None
    historical: bool


class RunView(NamedTuple):
    """A run with all that is known of it, first what a list shows."""

    run_id: int
    run_uuid: str
    process_id: int
    process_key: str
    business_date: date | None
    partition_key: str | None
    start_ts: datetime | None
    end_ts: datetime | None
    status: str
    attempt: int
    parent_run_uuid: str | None
    historical: bool
    process_name: str | None
    log_location: str | None
    facets_json: Any
    saw_success: bool
    saw_failure: bool
    created_at: datetime


class InputRow(NamedTuple):
    """What a run read. The tag is empty when it did not say which version."""

    dataset_id: int
    full_name: str
    version_tag: str
    dataset_version_id: int | None
    business_date: date | None
    state: str | None


class OutputRow(NamedTuple):
    """A version that a run made."""

    dataset_version_id: int
    dataset_id: int
    full_name: str
    version_tag: str
    business_date: date | None
    state: str
    row_count: int | None
    size_bytes: int | None
    produced_at: datetime


class StepRow(NamedTuple):
    """A named part of a run."""

    step_name: str
    step_order: int
    depends_on_json: Any
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    row_count: int | None
    detail_json: Any


class RunFilter(TypedDict, total=False):
    """Which runs are wanted; what is not said does not matter."""

    process_id: int
    statuses: Sequence[str]
    business_date: date
    since: datetime
    until: datetime
    parent_run_uuid: str
    before_id: int
    no_groups: bool
    """Leave out runs that only group others: made nothing, and a child ended the same way."""


_RUN, _PROCESS = ProcessRun.__table__.c, Process.__table__.c
_DATASET, _VERSION = Dataset.__table__.c, DatasetVersion.__table__.c
_INPUT, _STEP = RunInput.__table__.c, RunStep.__table__.c


def page_runs(session: Session, limit: int, **wanted: Unpack[RunFilter]) -> list[RunRow]:
    """Return runs with the keys of their processes, the newest first, from before one on."""
    statuses = wanted.pop("statuses", ())
    conditions = ("no_groups",) if wanted.pop("no_groups", False) else ()
    values: dict[str, Any] = {f"status{n}": status for n, status in enumerate(statuses)}
    question = _run_page(limit, len(statuses), (*conditions, *wanted))
    return question.ask(session, **values, **wanted)


def describe_run(session: Session, run_uuid: str) -> RunView:
    """Return a run with the key of its process."""
    run = _RUN_VIEW.ask_one(session, run_uuid=run_uuid)
    if run is None:
        raise RunNotFoundError(run_uuid)
    return run


def describe_inputs(session: Session, run_id: int) -> list[InputRow]:
    """Return what a run read."""
    return _INPUTS.ask(session, run_id=run_id)


def describe_outputs(session: Session, run_uuid: str) -> list[OutputRow]:
    """Return the versions that a run made."""
    return _OUTPUTS.ask(session, run_uuid=run_uuid)


def describe_steps(session: Session, run_id: int) -> list[StepRow]:
    """Return the steps of a run in their order."""
    return _STEPS.ask(session, run_id=run_id)


_LISTED = (
    _RUN.run_id,
    _RUN.run_uuid,
    _RUN.process_id,
    _PROCESS.process_key,
    _RUN.business_date,
    _RUN.partition_key,
    _RUN.start_ts,
    _RUN.end_ts,
    _RUN.status,
    _RUN.attempt,
    _RUN.parent_run_uuid,
    _RUN.historical,
)
_CHILD = ProcessRun.__table__.alias("child").c
_GROUPS = and_(
    exists().where(_CHILD.parent_run_uuid == _RUN.run_uuid, _CHILD.status == _RUN.status),
    ~exists().where(_VERSION.produced_by_run_id == _RUN.run_uuid),
)
_CONDITIONS = {
    "no_groups": ~_GROUPS,
    "process_id": _RUN.process_id == bindparam("process_id", type_=_RUN.process_id.type),
    "business_date": _RUN.business_date == bindparam("business_date", type_=Date()),
    "since": _RUN.start_ts >= bindparam("since", type_=_RUN.start_ts.type),
    "until": _RUN.start_ts < bindparam("until", type_=_RUN.start_ts.type),
    "parent_run_uuid": _RUN.parent_run_uuid
    == bindparam("parent_run_uuid", type_=_RUN.run_uuid.type),
    "before_id": _RUN.run_id < bindparam("before_id", type_=_RUN.run_id.type),
}


@lru_cache(maxsize=256)
def _run_page(limit: int, statuses: int, conditions: tuple[str, ...]) -> Question[RunRow]:
    query = select(*_LISTED).join(Process.__table__, _PROCESS.process_id == _RUN.process_id)
    if statuses:
        listed = [bindparam(f"status{n}", type_=String()) for n in range(statuses)]
        query = query.where(or_(*(_RUN.status == one for one in listed)))
    query = query.where(*(_CONDITIONS[name] for name in conditions))
    return Question(RunRow, query.order_by(_RUN.run_id.desc()).limit(limit))


_RUN_VIEW = Question(
    RunView,
    select(
        *_LISTED,
        _PROCESS.name,
        _RUN.log_location,
        _RUN.facets_json,
        _RUN.saw_success,
        _RUN.saw_failure,
        _RUN.created_at,
    )
    .join(Process.__table__, _PROCESS.process_id == _RUN.process_id)
    .where(_RUN.run_uuid == bindparam("run_uuid", type_=_RUN.run_uuid.type)),
)
_INPUTS = Question(
    InputRow,
    select(
        _INPUT.dataset_id,
        _DATASET.full_name,
        _INPUT.version_tag,
        _INPUT.dataset_version_id,
        _VERSION.business_date,
        _VERSION.state,
    )
    .join(Dataset.__table__, _DATASET.dataset_id == _INPUT.dataset_id)
    .join(
        DatasetVersion.__table__,
        _VERSION.dataset_version_id == _INPUT.dataset_version_id,
        isouter=True,
    )
    .where(_INPUT.run_id == bindparam("run_id", type_=_RUN.run_id.type))
    .order_by(_DATASET.full_name, _INPUT.version_tag),
)
_OUTPUTS = Question(
    OutputRow,
    select(
        _VERSION.dataset_version_id,
        _VERSION.dataset_id,
        _DATASET.full_name,
        _VERSION.version_tag,
        _VERSION.business_date,
        _VERSION.state,
        _VERSION.row_count,
        _VERSION.size_bytes,
        _VERSION.produced_at,
    )
    .join(Dataset.__table__, _DATASET.dataset_id == _VERSION.dataset_id)
    .where(_VERSION.produced_by_run_id == bindparam("run_uuid", type_=_RUN.run_uuid.type))
    .order_by(_DATASET.full_name, _VERSION.version_tag),
)
_STEPS = Question(
    StepRow,
    select(*(_STEP[name] for name in StepRow._fields))
    .where(_STEP.run_id == bindparam("run_id", type_=_RUN.run_id.type))
    .order_by(_STEP.step_order),
)


def find_run(session: Session, run_uuid: str) -> ProcessRun | None:
    """Return the run with this UUID, if there is one."""
    return session.scalar(select(ProcessRun).where(ProcessRun.run_uuid == run_uuid))


def note_run(
    session: Session,
    run_uuid: str,
    *,
    log_location: str | None = None,
    partition_key: str | None = None,
) -> None:
    """Note of a run what no event says."""
    run = get_run(session, run_uuid)
    run.log_location, run.partition_key = log_location, partition_key


def record_steps(session: Session, run_uuid: str, steps: Sequence[dict[str, Any]]) -> None:
    """Write the steps of a run in their order. Those of an earlier attempt are replaced."""
    run_id = get_run(session, run_uuid).run_id
    session.execute(delete(RunStep).where(RunStep.run_id == run_id))
    named: dict[str, dict[str, Any]] = {}
    for order, step in enumerate(steps):
        named[step["step_name"]] = {"run_id": run_id, "step_order": order, **step}
    if named:
        session.execute(insert(RunStep), list(named.values()))


class RunFailure(NamedTuple):
    """Why a run failed, as its last event says."""

    message: str = ""
    trace: str = ""


def failure_of(facets: Any) -> RunFailure:
    """Return why a run failed, from its facets; empty when they do not say."""
    facet = facets.get("errorMessage") if isinstance(facets, dict) else None
    if not isinstance(facet, dict):
        return RunFailure()
    message, trace = facet.get("message"), facet.get("stackTrace")
    return RunFailure(
        message if isinstance(message, str) else "", trace if isinstance(trace, str) else ""
    )


def list_open_runs(session: Session, key_prefix: str) -> Sequence[ProcessRun]:
    """Return the runs without an end of the processes whose keys begin so, lost ones too."""
    return session.scalars(
        select(ProcessRun)
        .join(Process, Process.process_id == ProcessRun.process_id)
        .where(Process.process_key.startswith(key_prefix, autoescape=True))
        .where(ProcessRun.status.in_((STARTED, LOST)))
    ).all()


def explain_lost(status: str, parent_run_uuid: str | None) -> str | None:
    """Say why a run is LOST; None if it is not."""
    if status != LOST:
        return None
    return f"Parent run {parent_run_uuid} has ended, and this run never reported its own end."


def reason_of_run(status: str, facets: Any, parent_run_uuid: str | None) -> str | None:
    """Say why a run failed, was cancelled or is lost; None if it did not say or succeeded."""
    return failure_of(facets).message or explain_lost(status, parent_run_uuid)


def list_children(session: Session, parent_run_uuid: str) -> Sequence[ProcessRun]:
    """Return the runs that belong to another, the oldest first."""
    return session.scalars(
        select(ProcessRun)
        .where(ProcessRun.parent_run_uuid == parent_run_uuid)
        .order_by(ProcessRun.run_id)
    ).all()
