"""Which versions were made from which, by what runs read and made.

Upstream it answers whether a version stands on one that was taken back; downstream, what was built
on a version and who owns that. Each level of the walk is one question.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from floe.catalog.retention import StateEvent, describe_state
from floe.catalog.tables import Dataset, DatasetVersion, Process, ProcessRun, RunInput
from floe.catalog.versions import READY, REJECTED, RETRACTED, SUPERSEDED, get_version_by_id

TAKEN_BACK = (RETRACTED, REJECTED)
MOST_LEVELS, MOST_FOUND = 50, 1_000
BATCH = 500


class TakenBack(NamedTuple):
    """A version upstream that was retracted or rejected after it was read."""

    full_name: str
    name: str
    tag: str
    state: str
    event: StateEvent | None


class BuiltOn(NamedTuple):
    """A version that was made, directly or through others, from another one."""

    dataset_version_id: int
    full_name: str
    name: str
    tag: str
    business_date: date | None
    state: str
    owner_team: str | None
    owner_email: str | None
    process_key: str | None
    run_uuid: str | None
    depth: int


def find_taken_back(session: Session, dataset_version_id: int) -> TakenBack | None:
    """Return the nearest version upstream that was taken back, if there is one."""
    seen, level = {dataset_version_id}, [dataset_version_id]
    for _ in range(MOST_LEVELS):
        rows = [row for row in _read_by(session, level) if row.number not in seen]
        taken = [row for row in rows if row.state in TAKEN_BACK]
        if taken:
            row = min(taken, key=lambda one: one.number)
            event = describe_state(session, get_version_by_id(session, row.number))
            return TakenBack(row.full_name, row.name, row.version_tag, row.state, event)
        level = list(dict.fromkeys(row.number for row in rows))
        seen |= set(level)
        if not level:
            return None
    return None


def list_built_on(
    session: Session, dataset_version_id: int, *, limit: int = MOST_FOUND
) -> list[BuiltOn]:
    """Return what was made from a version and can still be read, the nearest first.

    What was taken back already is walked through, not listed: others may stand on it.
    """
    seen, level = {dataset_version_id}, [dataset_version_id]
    found: list[BuiltOn] = []
    for depth in range(1, MOST_LEVELS + 1):
        rows = {row.number: row for row in _made_from(session, level) if row.number not in seen}
        found += [
            BuiltOn._make((*row, depth))
            for row in sorted(rows.values(), key=lambda one: (one.name, one.version_tag))
            if row.state in (READY, SUPERSEDED)
        ]
        seen |= set(rows)
        level = list(rows)
        if not level or len(found) >= limit:
            break
    return found[:limit]


def _read_by(session: Session, versions: Sequence[int]) -> Iterator[Any]:
    """Yield the versions that the makers of these versions read."""
    made, read = aliased(DatasetVersion), aliased(DatasetVersion)
    for batch in _batches(versions):
        yield from session.execute(
            select(
                read.dataset_version_id.label("number"),
                Dataset.full_name,
                Dataset.name,
                read.version_tag,
                read.state,
            )
            .select_from(made)
            .join(ProcessRun, ProcessRun.run_uuid == made.produced_by_run_id)
            .join(RunInput, RunInput.run_id == ProcessRun.run_id)
            .join(read, read.dataset_version_id == RunInput.dataset_version_id)
            .join(Dataset, Dataset.dataset_id == read.dataset_id)
            .where(made.dataset_version_id.in_(batch))
        )


def _made_from(session: Session, versions: Sequence[int]) -> Iterator[Any]:
    """Yield the versions made by runs that read one of these."""
    for batch in _batches(versions):
        yield from session.execute(
            select(
                DatasetVersion.dataset_version_id.label("number"),
                Dataset.full_name,
                Dataset.name,
                DatasetVersion.version_tag,
                DatasetVersion.business_date,
                DatasetVersion.state,
                Dataset.owner_team,
                Dataset.owner_email,
                Process.process_key,
                ProcessRun.run_uuid,
            )
            .select_from(RunInput)
            .join(ProcessRun, ProcessRun.run_id == RunInput.run_id)
            .join(Process, Process.process_id == ProcessRun.process_id)
            .join(DatasetVersion, DatasetVersion.produced_by_run_id == ProcessRun.run_uuid)
            .join(Dataset, Dataset.dataset_id == DatasetVersion.dataset_id)
            .where(RunInput.dataset_version_id.in_(batch))
        )


def _batches(values: Iterable[int]) -> Iterator[Sequence[int]]:
    listed = list(values)
    for start in range(0, len(listed), BATCH):
        yield listed[start : start + BATCH]
