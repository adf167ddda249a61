"""Processes: declared or observed work, found by key, with its inputs and outputs."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from sqlalchemy import select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import AmbiguousProcessError, ProcessNotFoundError
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
