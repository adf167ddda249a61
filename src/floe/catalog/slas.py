"""SLAs of datasets and processes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, TypedDict

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from floe.catalog.datasets import ACTIVE
from floe.catalog.tables import Dataset, DatasetVersion, Sla
from floe.catalog.versions import READY, SUPERSEDED


class SlaFields(TypedDict, total=False):
    """The fields of an SLA."""

    description: str | None
    sla_window_sec: int | None
    due: str | None
    zone: str | None
    calendar: str | None
    day_offset: int | None
    escalation_json: Any


@dataclass(frozen=True)
class StaleDataset:
    """A dataset whose newest version is older than its SLA allows, or missing."""

    dataset_id: int
    full_name: str
    last_produced_at: datetime | None
    allowed: timedelta


def list_stale_datasets(
    session: Session, now: datetime, *, after: str = "", limit: int | None = None
) -> Sequence[StaleDataset]:
    """Return the active datasets after `after` that are older than their SLA allows."""
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
    promised = (
        StaleDataset(i, name, at, timedelta(seconds=window or 0)) for i, name, window, at in rows
    )
    # Compared here, because each database has its own syntax for subtracting seconds.
    stale = (
        dataset
        for dataset in promised
        if dataset.last_produced_at is None or now - dataset.last_produced_at > dataset.allowed
    )
    return list(islice(stale, limit))


def describe_sla(session: Session, sla_id: int | None) -> str | None:
    """Describe an SLA in words, or return None."""
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
        # Imported here, because floe.spec is slow to import and seldom needed.
        from floe.spec import format_duration

        parts.append(f"within {format_duration(timedelta(seconds=sla.sla_window_sec))}")
    return ", ".join(parts) or sla.description
