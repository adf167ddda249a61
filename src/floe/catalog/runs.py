"""Runs: executions of processes, with their inputs, outputs and steps."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack
from uuid import UUID

from msgspec import Struct
from sqlalchemy import Date, String, and_, bindparam, delete, exists, insert, or_, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import RunAmbiguousError, RunNotFoundError, WrongStateError
from floe.catalog.queries import TypedQuery
from floe.catalog.tables import Dataset, DatasetVersion, Process, ProcessRun, RunInput, RunStep

STARTED, SUCCESS, FAILED, CANCELLED = "STARTED", "SUCCESS", "FAILED", "CANCELLED"

# The parent run has ended, but this run never reported its own end. A late end replaces LOST.
LOST = "LOST"

ENDED = frozenset({SUCCESS, FAILED, CANCELLED})


def finish_run(session: Session, run: ProcessRun, status: str) -> None:
    """End a run with a final status; do nothing if it has already ended."""
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
    """Return runs older than `before_id`, newest first."""
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


def record_inputs(session: Session, run: ProcessRun, versions: Iterable[DatasetVersion]) -> None:
    """Record which versions a run read; skip those recorded before."""
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
    """Return the rows of a run's inputs."""
    return session.scalars(select(RunInput).where(RunInput.run_id == run_id)).all()


class InputRow(Struct):
    """An input of a run. The tag is empty if the run did not report a version."""

    dataset_id: int
    full_name: str
    version_tag: str
    dataset_version_id: int | None
    business_date: date | None
    state: str | None


class OutputRow(Struct):
    """A version that a run created."""

    dataset_version_id: int
    dataset_id: int
    full_name: str
    version_tag: str
    business_date: date | None
    state: str
    row_count: int | None
    size_bytes: int | None
    produced_at: datetime


class StepRow(Struct):
    """A named part of a run."""

    step_name: str
    step_order: int
    depends_on_json: Any
    status: str
    start_ts: datetime | None
    end_ts: datetime | None
    row_count: int | None
    detail_json: Any


class RunRow(Struct):
    """A run as a row of a list."""

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


class RunDetail(RunRow):
    """A run with the reason of a failure, its inputs, outputs and steps."""

    process_name: str | None
    log_location: str | None
    facets_json: Any
    saw_success: bool
    saw_failure: bool
    created_at: datetime
    inputs: Sequence[InputRow] = ()
    outputs: Sequence[OutputRow] = ()
    steps: Sequence[StepRow] = ()
    reason: str | None = None
    """Why it failed, or is LOST."""


class RunFilter(TypedDict, total=False):
    """Filters for runs; an omitted field is not checked."""

    process_id: int
    statuses: Sequence[str]
    business_date: date
    since: datetime
    until: datetime
    parent_run_uuid: str
    before_id: int
    no_groups: bool
    """Leave out runs that only group others: no version, and a child of the same status."""


_RUN, _PROCESS = ProcessRun.__table__.c, Process.__table__.c

_DATASET, _VERSION = Dataset.__table__.c, DatasetVersion.__table__.c

_INPUT, _STEP = RunInput.__table__.c, RunStep.__table__.c


def page_runs(session: Session, limit: int, **wanted: Unpack[RunFilter]) -> list[RunRow]:
    """Return runs with their process keys, newest first."""
    statuses = wanted.pop("statuses", ())
    conditions = ("no_groups",) if wanted.pop("no_groups", False) else ()
    values: dict[str, Any] = {f"status{n}": status for n, status in enumerate(statuses)}
    query = _run_page(limit, len(statuses), (*conditions, *wanted))
    return query.fetch(session, **values, **wanted)


def describe_run(session: Session, run_uuid: str) -> RunDetail:
    """Return a run with its inputs, outputs and steps."""
    run = _RUN_DETAIL.fetch_one(session, run_uuid=run_uuid)
    if run is None:
        raise RunNotFoundError(run_uuid)
    run.inputs = _INPUTS.fetch(session, run_id=run.run_id)
    run.outputs = _OUTPUTS.fetch(session, run_uuid=run_uuid)
    run.steps = _STEPS.fetch(session, run_id=run.run_id)
    run.reason = reason_of_run(run.status, run.facets_json, run.parent_run_uuid)
    return run


def find_last_success(session: Session, dataset_id: int) -> RunRow | None:
    """Return the newest successful run that wrote a version of a dataset."""
    return _LAST_SUCCESS.fetch_one(session, dataset_id=dataset_id)


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
def _run_page(limit: int, statuses: int, conditions: tuple[str, ...]) -> TypedQuery[RunRow]:
    query = select(*_LISTED).join(Process.__table__, _PROCESS.process_id == _RUN.process_id)
    if statuses:
        listed = [bindparam(f"status{n}", type_=String()) for n in range(statuses)]
        query = query.where(or_(*(_RUN.status == status for status in listed)))
    query = query.where(*(_CONDITIONS[name] for name in conditions))
    return TypedQuery(RunRow, query.order_by(_RUN.run_id.desc()).limit(limit))


_RUN_DETAIL = TypedQuery(
    RunDetail,
    select(
        *_LISTED,
        _PROCESS.name.label("process_name"),
        _RUN.log_location,
        _RUN.facets_json,
        _RUN.saw_success,
        _RUN.saw_failure,
        _RUN.created_at,
    )
    .join(Process.__table__, _PROCESS.process_id == _RUN.process_id)
    .where(_RUN.run_uuid == bindparam("run_uuid", type_=_RUN.run_uuid.type)),
)

_LAST_SUCCESS = TypedQuery(
    RunRow,
    select(*_LISTED)
    .join(Process.__table__, _PROCESS.process_id == _RUN.process_id)
    .join(DatasetVersion.__table__, _VERSION.produced_by_run_id == _RUN.run_uuid)
    .where(
        _VERSION.dataset_id == bindparam("dataset_id", type_=_VERSION.dataset_id.type),
        _RUN.status == SUCCESS,
    )
    # By the time of the version, because there is an index on it.
    .order_by(_VERSION.produced_at.desc())
    .limit(1),
)

_INPUTS = TypedQuery(
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

_OUTPUTS = TypedQuery(
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

_STEPS = TypedQuery(
    StepRow,
    select(*(_STEP[name] for name in StepRow.__struct_fields__))
    .where(_STEP.run_id == bindparam("run_id", type_=_RUN.run_id.type))
    .order_by(_STEP.step_order),
)


def find_run(session: Session, run_uuid: str) -> ProcessRun | None:
    """Return the run with this UUID, or None."""
    return session.scalar(select(ProcessRun).where(ProcessRun.run_uuid == run_uuid))


def annotate_run(
    session: Session,
    run_uuid: str,
    *,
    log_location: str | None = None,
    partition_key: str | None = None,
) -> None:
    """Set the fields of a run that no event carries."""
    run = get_run(session, run_uuid)
    run.log_location, run.partition_key = log_location, partition_key


def record_steps(session: Session, run_uuid: str, steps: Sequence[dict[str, Any]]) -> None:
    """Store the steps of a run in order; replace those of an earlier attempt."""
    run_id = get_run(session, run_uuid).run_id
    session.execute(delete(RunStep).where(RunStep.run_id == run_id))
    rows: dict[str, dict[str, Any]] = {}
    for order, step in enumerate(steps):
        rows[step["step_name"]] = {"run_id": run_id, "step_order": order, **step}
    if rows:
        session.execute(insert(RunStep), list(rows.values()))


class RunFailure(NamedTuple):
    """Why a run failed, from its last event."""

    message: str = ""
    trace: str = ""


def failure_of(facets: Any) -> RunFailure:
    """Return why a run failed, from its facets; empty if they have no reason."""
    facet = facets.get("errorMessage") if isinstance(facets, dict) else None
    if not isinstance(facet, dict):
        return RunFailure()
    message, trace = facet.get("message"), facet.get("stackTrace")
    return RunFailure(
        message if isinstance(message, str) else "", trace if isinstance(trace, str) else ""
    )


def list_open_runs(session: Session, key_prefix: str) -> Sequence[ProcessRun]:
    """Return the STARTED and LOST runs of processes whose keys have this prefix."""
    return session.scalars(
        select(ProcessRun)
        .join(Process, Process.process_id == ProcessRun.process_id)
        .where(Process.process_key.startswith(key_prefix, autoescape=True))
        .where(ProcessRun.status.in_((STARTED, LOST)))
    ).all()


def explain_lost(status: str, parent_run_uuid: str | None) -> str | None:
    """Explain why a run is LOST, or return None if it is not."""
    if status != LOST:
        return None
    return f"Parent run {parent_run_uuid} has ended, and this run never reported its own end."


def reason_of_run(status: str, facets: Any, parent_run_uuid: str | None) -> str | None:
    """Return why a run failed, was cancelled or is lost, or None."""
    return failure_of(facets).message or explain_lost(status, parent_run_uuid)


def list_children(session: Session, parent_run_uuid: str) -> Sequence[ProcessRun]:
    """Return the child runs of a run, oldest first."""
    return session.scalars(
        select(ProcessRun)
        .where(ProcessRun.parent_run_uuid == parent_run_uuid)
        .order_by(ProcessRun.run_id)
    ).all()


UUID_LENGTH, SHORT_LENGTH = 36, 8

MAX_MATCHES = 5
"""How many matching ids an error lists."""


def resolve_run_id(session: Session, prefix: str) -> str:
    """Resolve the prefix of a run or batch id; return unmatched input unchanged."""
    bounds = _bounds(prefix)
    if bounds is None:
        return prefix
    matches: set[str] = set()
    for column in (ProcessRun.run_uuid, ProcessRun.parent_run_uuid):
        in_range = column.between(*bounds)
        query = select(column).where(in_range).distinct().limit(MAX_MATCHES)
        matches |= set(session.scalars(query))
    if len(matches) > 1:
        raise RunAmbiguousError(prefix, matches)
    return next(iter(matches), prefix)


def _bounds(prefix: str) -> tuple[str, str] | None:
    """Return the first and last possible id with this prefix, for an index range scan."""
    digits = prefix.replace("-", "")
    try:
        first, last = (UUID(digits.ljust(32, filler)) for filler in "0f")
    except ValueError:
        return None
    return (str(first), str(last)) if len(prefix) < UUID_LENGTH else None


def short_run_id(run_uuid: str) -> str:
    """Return the short form of a run id, which `resolve_run_id` accepts."""
    return run_uuid[:SHORT_LENGTH]
