"""SLAs: promises attached to datasets and processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypedDict, Unpack

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.datasets import ACTIVE
from floe.catalog.rows import apply_fields
from floe.catalog.tables import Dataset, DatasetVersion, Sla
from floe.catalog.versions import READY, SUPERSEDED


class SlaFields(TypedDict, total=False):
    """What a promise says."""

    description: str | None
    sla_window_sec: int | None
    due: str | None
    zone: str | None
    calendar: str | None
    day_offset: int | None
    escalation_json: Any


@dataclass(frozen=True)
class StaleDataset:
    """A dataset whose newest version is older than its SLA allows, or that has none."""

    dataset_id: int
    full_name: str
    last_produced_at: datetime | None
    allowed: timedelta


def put_sla(session: Session, name: str, **values: Unpack[SlaFields]) -> Sla:
    """Make a promise known under a name, or change what differs of it."""
    sla = session.scalar(select(Sla).where(Sla.name == name))
    if sla is None:
        sla = Sla(name=name, created_at=clock.now(), **values)
        session.add(sla)
        session.flush()
    else:
        apply_fields(sla, values)
    return sla


def list_stale_datasets(
    session: Session, now: datetime, *, after: str = "", limit: int | None = None
) -> Sequence[StaleDataset]:
    """Return the active datasets that are older than their SLA allows, from after a name on."""
    last = func.max(DatasetVersion.produced_at)
    counted = DatasetVersion.state.in_((READY, SUPERSEDED))
    rows = session.execute(
        select(Dataset.dataset_id, Dataset.full_name, Sla.sla_window_sec, last)
        .join(Sla, Sla.sla_id == Dataset.default_sla_id)
        .join(
            DatasetVersion,
            (DatasetVersion.dataset_id == Dataset.dataset_id) & counted,
            isouter=True,
        )
        .where(Sla.sla_window_sec.is_not(None), Dataset.status == ACTIVE, Dataset.full_name > after)
        .group_by(Dataset.dataset_id, Dataset.full_name, Sla.sla_window_sec)
        .order_by(Dataset.full_name)
    )
    found = (
        StaleDataset(i, name, at, timedelta(seconds=window or 0)) for i, name, window, at in rows
    )
    # Not by the database: no two stores subtract seconds from a moment in the same words.
    stale = (
        one
        for one in found
        if one.last_produced_at is None or now - one.last_produced_at > one.allowed
    )
    return list(islice(stale, limit))


def describe_sla(session: Session, sla_id: int | None) -> str | None:
    """Say a promise in words, None where there is none."""
    sla = session.get(Sla, sla_id) if sla_id is not None else None
    if sla is None:
        return None
    parts = []
    if sla.due:
        parts.append(f"by {sla.due} {sla.zone or 'UTC'}")
    if sla.day_offset:
        parts.append(f"{sla.day_offset} day{'s' if sla.day_offset > 1 else ''} later")
    if sla.calendar:
        parts.append(f"on {sla.calendar} days")
    if sla.sla_window_sec:
        # Here, because it comes with cron and all other kinds of value, and is seldom needed.
        from floe.spec import format_duration

        parts.append(f"within {format_duration(timedelta(seconds=sla.sla_window_sec))}")
    return ", ".join(parts) or sla.description
