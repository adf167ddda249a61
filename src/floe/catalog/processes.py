"""Processes: declared or observed work, found by key, with its inputs and outputs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from msgspec import Struct
from sqlalchemy import String, bindparam, or_, select, union_all
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import apply_fields
from floe.catalog.errors import AmbiguousProcessError, ProcessNotFoundError
from floe.catalog.queries import TypedQuery, parse_row_id
from floe.catalog.runs import RunRow, page_runs
from floe.catalog.slas import describe_sla
from floe.catalog.tables import Dataset, LineageEdge, Process

ACTIVE, DEPRECATED = "ACTIVE", "DEPRECATED"
TRIGGER_PROCESS, TRIGGER_DATASET, TRIGGER_HYBRID = "PROCESS", "DATASET", "HYBRID"


class ProcessFields(TypedDict, total=False):
    """The fields of a process besides its key."""

    name: str | None
    description: str | None
    technology: str | None
    team: str | None
    owner_email: str | None
    trigger_mode: str
    status: str
    sla_id: int | None
    project_id: int | None
    declaration_json: Any


@dataclass(frozen=True)
class Contract:
    """The inputs and outputs of a process, by full name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def new_process(key: str, **values: Unpack[ProcessFields]) -> Process:
    """Build the row of a new process without storing it."""
    values.setdefault("trigger_mode", TRIGGER_PROCESS)
    values.setdefault("status", ACTIVE)
    values.setdefault("name", key.rsplit("/", 1)[-1])
    return Process(process_key=key, created_at=clock.now(), **values)


def register_process(session: Session, key: str, **values: Unpack[ProcessFields]) -> Process:
    """Create a process, or update the existing one with this key."""
    process = session.scalar(select(Process).where(Process.process_key == key))
    if process is None:
        process = new_process(key, **values)
        session.add(process)
        session.flush()
    else:
        apply_fields(process, values)
    return process


def find_process(session: Session, key: str) -> Process:
    """Find a process by key, unique name or id."""
    matches = session.scalars(
        select(Process).where((Process.process_key == key) | (Process.name == key))
    ).all()
    exact = [process for process in matches if process.process_key == key]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise AmbiguousProcessError(key, [process.process_key for process in matches])
    process_id = parse_row_id(key)
    process = None if process_id is None else session.get(Process, process_id)
    if process is None:
        raise ProcessNotFoundError(key, known=session.scalars(select(Process.process_key)))
    return process


def list_processes(
    session: Session, *, after: str = "", limit: int = 100, statuses: Iterable[str] = ()
) -> Sequence[Process]:
    """Return processes with keys after `after`, sorted by key."""
    query = select(Process).where(Process.process_key > after)
    if wanted := list(statuses):
        query = query.where(Process.status.in_(wanted))
    return session.scalars(query.order_by(Process.process_key).limit(limit)).all()


def get_contract(session: Session, process_id: int) -> Contract:
    """Return the current inputs and outputs of a process, declared or observed."""
    return Contract(
        inputs=_names(session, LineageEdge.source_id, "target", process_id, "CONSUMES"),
        outputs=_names(session, LineageEdge.target_id, "source", process_id, "PRODUCES"),
    )


def _names(
    session: Session, dataset: Any, side: str, process_id: int, role: str
) -> tuple[str, ...]:
    names = session.scalars(
        select(Dataset.full_name)
        .join(LineageEdge, dataset == Dataset.dataset_id)
        .where(
            getattr(LineageEdge, f"{side}_type") == "PROCESS",
            getattr(LineageEdge, f"{side}_id") == process_id,
            LineageEdge.edge_role == role,
            LineageEdge.ended_at.is_(None),
        )
        .distinct()
        .order_by(Dataset.full_name)
    )
    return tuple(names)


RUNS_SHOWN = 10


class ProcessRow(Struct):
    """A process as a row of a list."""

    process_id: int
    process_key: str
    name: str | None
    description: str | None
    technology: str | None
    team: str | None
    owner_email: str | None
    trigger_mode: str
    status: str


class ProcessDetail(ProcessRow):
    """A process with its inputs, outputs and newest runs."""

    declaration_json: Any
    created_at: datetime
    updated_at: datetime | None
    sla_id: int | None
    sla: str | None = None
    inputs: Sequence[str] = ()
    outputs: Sequence[str] = ()
    sql: str | None = None
    """The SQL of a declared process, as it was registered."""
    runs: Sequence[RunRow] = ()


class Neighbour(NamedTuple):
    """A dataset that a process reads or writes, with the role of the edge."""

    role: str
    full_name: str


_OF, _EDGE, _DATASET = Process.__table__.c, LineageEdge.__table__.c, Dataset.__table__.c


def get_process(session: Session, process_id: int) -> Process:
    """Return the process with this id."""
    process = session.get(Process, process_id)
    if process is None:
        raise ProcessNotFoundError(str(process_id))
    return process


def describe_process(session: Session, process_id: int) -> ProcessDetail:
    """Return a process with its inputs, outputs and newest runs."""
    process = _DETAIL.fetch_one(session, process_id=process_id)
    if process is None:
        raise ProcessNotFoundError(str(process_id))
    contract = describe_contract(session, process_id)
    process.inputs, process.outputs = contract.inputs, contract.outputs
    process.sla = describe_sla(session, process.sla_id)
    process.sql = find_sql(session, process_id)
    process.runs = page_runs(session, RUNS_SHOWN, process_id=process_id)
    return process


def find_sql(session: Session, process_id: int) -> str | None:
    """Return the SQL of a process, from a declared edge to an output."""
    return session.scalar(
        select(LineageEdge.transform_meta)
        .where(
            LineageEdge.source_type == "PROCESS",
            LineageEdge.source_id == process_id,
            LineageEdge.ended_at.is_(None),
            LineageEdge.transform_meta.is_not(None),
        )
        .limit(1)
    )


def page_processes(
    session: Session, limit: int, *, after: str = "", statuses: Sequence[str] = ()
) -> list[ProcessRow]:
    """Return processes with keys after `after`, sorted by key, as plain rows."""
    values: dict[str, Any] = {f"status{n}": status for n, status in enumerate(statuses)}
    return _process_page(limit, len(statuses)).fetch(session, after=after, **values)


def describe_contract(session: Session, process_id: int) -> Contract:
    """Return the current inputs and outputs of a process, in one query."""
    neighbours = sorted(_NEIGHBOURS.fetch(session, process_id=process_id))
    return Contract(
        inputs=tuple(
            neighbour.full_name for neighbour in neighbours if neighbour.role == "CONSUMES"
        ),
        outputs=tuple(
            neighbour.full_name for neighbour in neighbours if neighbour.role == "PRODUCES"
        ),
    )


@lru_cache(maxsize=64)
def _process_page(limit: int, statuses: int) -> TypedQuery[ProcessRow]:
    query = select(*(_OF[name] for name in ProcessRow.__struct_fields__)).where(
        _OF.process_key > bindparam("after", type_=String())
    )
    if statuses:
        listed = [bindparam(f"status{n}", type_=String()) for n in range(statuses)]
        query = query.where(or_(*(_OF.status == status for status in listed)))
    return TypedQuery(ProcessRow, query.order_by(_OF.process_key).limit(limit))


_PROCESS_ID = bindparam("process_id", type_=_OF.process_id.type)
_DETAIL = TypedQuery(
    ProcessDetail,
    select(
        *(_OF[name] for name in ProcessRow.__struct_fields__),
        _OF.declaration_json,
        _OF.created_at,
        _OF.updated_at,
        _OF.sla_id,
    ).where(_OF.process_id == _PROCESS_ID),
)
_NEIGHBOURS = TypedQuery(
    Neighbour,
    union_all(
        *(
            select(_EDGE.edge_role, _DATASET.full_name)
            .join(Dataset.__table__, _DATASET.dataset_id == _EDGE[f"{far}_id"])
            .where(
                _EDGE[f"{near}_type"] == "PROCESS",
                _EDGE[f"{near}_id"] == _PROCESS_ID,
                _EDGE.edge_role == role,
                _EDGE.ended_at.is_(None),
            )
            .distinct()
            for near, far, role in (
                ("target", "source", "CONSUMES"),
                ("source", "target", "PRODUCES"),
            )
        )
    ),
)
