"""Processes: declared or observed work, found by key, with its inputs and outputs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import String, bindparam, or_, select, union_all
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import AmbiguousProcessError, ProcessNotFoundError
from floe.catalog.questions import Question
from floe.catalog.rows import apply_fields, number_of
from floe.catalog.tables import Dataset, LineageEdge, Process

ACTIVE, DEPRECATED = "ACTIVE", "DEPRECATED"
TRIGGER_PROCESS, TRIGGER_DATASET, TRIGGER_HYBRID = "PROCESS", "DATASET", "HYBRID"


class ProcessFields(TypedDict, total=False):
    """What can be said of a process besides its key."""

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
    """What a process reads and writes, by full name."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def new_process(key: str, **values: Unpack[ProcessFields]) -> Process:
    """Build a process's row without writing it."""
    values.setdefault("trigger_mode", TRIGGER_PROCESS)
    values.setdefault("status", ACTIVE)
    values.setdefault("name", key.rsplit("/", 1)[-1])
    return Process(process_key=key, created_at=clock.now(), **values)


def register_process(session: Session, key: str, **values: Unpack[ProcessFields]) -> Process:
    """Make a process known, or change what differs of one that is."""
    process = session.scalar(select(Process).where(Process.process_key == key))
    if process is None:
        process = new_process(key, **values)
        session.add(process)
        session.flush()
    else:
        apply_fields(process, values)
    return process


def find_process(session: Session, key: str) -> Process:
    """Find a process by its key, its name where that is unique, or its number."""
    matches = session.scalars(
        select(Process).where((Process.process_key == key) | (Process.name == key))
    ).all()
    exact = [process for process in matches if process.process_key == key]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise AmbiguousProcessError(key, [process.process_key for process in matches])
    number = number_of(key)
    process = None if number is None else session.get(Process, number)
    if process is None:
        raise ProcessNotFoundError(key, known=session.scalars(select(Process.process_key)))
    return process


def list_processes(
    session: Session, *, after: str = "", limit: int = 100, statuses: Iterable[str] = ()
) -> Sequence[Process]:
    """Return processes by key, from after one on."""
    query = select(Process).where(Process.process_key > after)
    if wanted := list(statuses):
        query = query.where(Process.status.in_(wanted))
    return session.scalars(query.order_by(Process.process_key).limit(limit)).all()


def get_contract(session: Session, process_id: int) -> Contract:
    """Return what a process reads and writes today, declared or observed."""
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


class ProcessRow(NamedTuple):
    """A process, as a list shows it."""

    process_id: int
    process_key: str
    name: str | None
    description: str | None
    technology: str | None
    team: str | None
    owner_email: str | None
    trigger_mode: str
    status: str


class ProcessView(NamedTuple):
    """A process with all that is known of it, first what a list shows."""

    process_id: int
    process_key: str
    name: str | None
    description: str | None
    technology: str | None
    team: str | None
    owner_email: str | None
    trigger_mode: str
    status: str
    declaration_json: Any
    created_at: datetime
    updated_at: datetime | None
    sla_id: int | None


class Neighbour(NamedTuple):
    """A dataset that a process reads or writes."""

    role: str
    full_name: str


_OF, _EDGE, _DATASET = Process.__table__.c, LineageEdge.__table__.c, Dataset.__table__.c


def get_process(session: Session, process_id: int) -> ProcessView:
    """Return the process with this number."""
    process = _VIEW.ask_one(session, process_id=process_id)
    if process is None:
        raise ProcessNotFoundError(str(process_id))
    return process


def page_processes(
    session: Session, limit: int, *, after: str = "", statuses: Sequence[str] = ()
) -> list[ProcessRow]:
    """Return processes by key, from after one on."""
    values: dict[str, Any] = {f"status{n}": status for n, status in enumerate(statuses)}
    return _process_page(limit, len(statuses)).ask(session, after=after, **values)


def describe_contract(session: Session, process_id: int) -> Contract:
    """Return what a process reads and writes today, in one question."""
    found = sorted(_NEIGHBOURS.ask(session, process_id=process_id))
    return Contract(
        inputs=tuple(one.full_name for one in found if one.role == "CONSUMES"),
        outputs=tuple(one.full_name for one in found if one.role == "PRODUCES"),
    )


@lru_cache(maxsize=64)
def _process_page(limit: int, statuses: int) -> Question[ProcessRow]:
    query = select(*(_OF[name] for name in ProcessRow._fields)).where(
        _OF.process_key > bindparam("after", type_=String())
    )
    if statuses:
        listed = [bindparam(f"status{n}", type_=String()) for n in range(statuses)]
        query = query.where(or_(*(_OF.status == one for one in listed)))
    return Question(ProcessRow, query.order_by(_OF.process_key).limit(limit))


_NUMBER = bindparam("process_id", type_=_OF.process_id.type)
_VIEW = Question(
    ProcessView,
    select(*(_OF[name] for name in ProcessView._fields)).where(_OF.process_id == _NUMBER),
)
_NEIGHBOURS = Question(
    Neighbour,
    union_all(
        *(
            select(_EDGE.edge_role, _DATASET.full_name)
            .join(Dataset.__table__, _DATASET.dataset_id == _EDGE[f"{far}_id"])
            .where(
                _EDGE[f"{near}_type"] == "PROCESS",
                _EDGE[f"{near}_id"] == _NUMBER,
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
