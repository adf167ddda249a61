"""What triggers ask of versions and runs: for many processes and dates at once, in few questions.

How many questions there are follows from how many dates are asked for and from the size of the
batch, never from how much the catalog holds.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import literal_column, select, union_all
from sqlalchemy.orm import Session

from floe.catalog.changes import last_position
from floe.catalog.runs import STARTED, SUCCESS
from floe.catalog.tables import Change, Dataset, DatasetVersion, Process, ProcessRun
from floe.catalog.versions import READY

VERSION_READY, RUN_FAILED = f"VERSION_{READY}", "RUN_FAILED"
# Databases take only so many values, and so many parts of a union, in one statement.
MOST_VALUES, MOST_PARTS = 500, 50


class ReadyChange(NamedTuple):
    """A version that became READY."""

    position: int
    namespace: str
    dataset: str
    business_date: date
    dataset_version_id: int


class FailedChange(NamedTuple):
    """A run that failed."""

    position: int
    process_id: int
    process_key: str
    run_uuid: str
    facets_json: Any


class Asked(NamedTuple):
    """The newest READY versions of a dataset up to a date."""

    dataset_id: int
    until: date
    since: date | None = None
    most: int = 1


def page_after(session: Session, after: int, size: int) -> tuple[int, int]:
    """Return where a page of the log begins and ends; positions have no gaps.

    A log that is shorter than what was read of it is another one: it is read from its start.
    """
    last = last_position(session)
    start = after if after <= last else 0
    return start, min(start + size, last)


def list_ready_changes(session: Session, after: int, until: int) -> list[ReadyChange]:
    """Return the versions that became READY between two positions of the log, in order."""
    rows: Any = session.execute(
        select(
            Change.position,
            Dataset.namespace,
            Dataset.name,
            Change.business_date,
            Change.dataset_version_id,
        )
        .join(Dataset, Dataset.dataset_id == Change.dataset_id)
        .where(Change.position > after, Change.position <= until, Change.kind == VERSION_READY)
        .where(Change.business_date.is_not(None), Change.dataset_version_id.is_not(None))
        .order_by(Change.position)
    )
    return [ReadyChange(*row) for row in rows]


def list_failed_changes(session: Session, after: int, until: int) -> list[FailedChange]:
    """Return the runs that failed between two positions of the log, in order."""
    rows: Any = session.execute(
        select(
            Change.position,
            Process.process_id,
            Process.process_key,
            ProcessRun.run_uuid,
            ProcessRun.facets_json,
        )
        .join(ProcessRun, ProcessRun.run_id == Change.run_id)
        .join(Process, Process.process_id == ProcessRun.process_id)
        .where(Change.position > after, Change.position <= until, Change.kind == RUN_FAILED)
        .order_by(Change.position)
    )
    return [FailedChange(*row) for row in rows]


def find_dataset_ids(session: Session, full_names: Iterable[str]) -> dict[str, int]:
    """Return the numbers of datasets by their full names."""
    found: dict[str, int] = {}
    for names in _batches(full_names, MOST_VALUES):
        rows: Any = session.execute(
            select(Dataset.full_name, Dataset.dataset_id).where(Dataset.full_name.in_(names))
        )
        found |= dict(map(tuple, rows))
    return found


def tags_on(session: Session, day: date, dataset_ids: Iterable[int]) -> dict[int, str]:
    """Return the tag of the READY version that each dataset has for a date."""
    found: dict[int, str] = {}
    for numbers in _batches(dataset_ids, MOST_VALUES):
        rows: Any = session.execute(
            select(DatasetVersion.dataset_id, DatasetVersion.version_tag)
            .where(
                DatasetVersion.dataset_id.in_(numbers),
                DatasetVersion.business_date == day,
                DatasetVersion.state == READY,
            )
            .order_by(DatasetVersion.dataset_version_id)
        )
        # Of several partitions the one that was made last, as for a run.
        found |= dict(map(tuple, rows))
    return found


def tags_until(session: Session, asked: Iterable[Asked]) -> dict[Asked, list[str]]:
    """Return the tags of the newest READY versions up to each date, the newest first."""
    found: defaultdict[Asked, list[str]] = defaultdict(list)
    for batch in _batches(asked, MOST_PARTS):
        parts = [_newest(number, one) for number, one in enumerate(batch)]
        rows: Any = session.execute(union_all(*parts))
        ordered = sorted(rows, key=lambda row: (row.business_date, row.number), reverse=True)
        for row in ordered:
            found[batch[row.part]].append(row.version_tag)
    return dict(found)


def _newest(part: int, one: Asked) -> Any:
    query: Any = select(
        literal_column(str(part)).label("part"),
        DatasetVersion.version_tag,
        DatasetVersion.business_date,
        DatasetVersion.dataset_version_id.label("number"),
    ).where(
        DatasetVersion.dataset_id == one.dataset_id,
        DatasetVersion.state == READY,
        DatasetVersion.business_date <= one.until,
    )
    if one.since is not None:
        query = query.where(DatasetVersion.business_date >= one.since)
    newest = query.order_by(
        DatasetVersion.business_date.desc(), DatasetVersion.dataset_version_id.desc()
    )
    # Within brackets: a part of a union has an order and a limit of its own only there.
    return select(newest.limit(one.most).subquery())


def dates_after(session: Session, day: date, dataset_ids: Iterable[int]) -> dict[int, set[date]]:
    """Return the dates after one for which datasets have a READY version."""
    found: defaultdict[int, set[date]] = defaultdict(set)
    for numbers in _batches(dataset_ids, MOST_VALUES):
        rows: Any = session.execute(
            select(DatasetVersion.dataset_id, DatasetVersion.business_date)
            .where(
                DatasetVersion.dataset_id.in_(numbers),
                DatasetVersion.business_date > day,
                DatasetVersion.state == READY,
            )
            .distinct()
        )
        for number, later in rows:
            found[number].add(later)
    return dict(found)


def dates_run_after(
    session: Session, day: date, process_keys: Iterable[str]
) -> dict[str, set[date]]:
    """Return the dates after one for which processes have had a run, whatever became of it."""
    found: defaultdict[str, set[date]] = defaultdict(set)
    for keys in _batches(process_keys, MOST_VALUES):
        rows: Any = session.execute(
            select(Process.process_key, ProcessRun.business_date)
            .join(ProcessRun, ProcessRun.process_id == Process.process_id)
            .where(Process.process_key.in_(keys), ProcessRun.business_date > day)
            .distinct()
        )
        for key, later in rows:
            found[key].add(later)
    return dict(found)


def facets_of_runs(
    session: Session, day: date, process_keys: Iterable[str]
) -> dict[str, list[Any]]:
    """Return what the runs of processes for a date say of themselves, the newest first.

    Runs that failed or were cancelled are left out: they have made nothing of what they read.
    """
    found: defaultdict[str, list[Any]] = defaultdict(list)
    for keys in _batches(process_keys, MOST_VALUES):
        rows: Any = session.execute(
            select(Process.process_key, ProcessRun.facets_json)
            .join(ProcessRun, ProcessRun.process_id == Process.process_id)
            .where(
                Process.process_key.in_(keys),
                ProcessRun.business_date == day,
                ProcessRun.status.in_((SUCCESS, STARTED)),
            )
            .order_by(ProcessRun.run_id.desc())
        )
        for key, facets in rows:
            found[key].append(facets)
    return dict(found)


One = TypeVar("One")


def _batches(values: Iterable[One], size: int) -> Iterator[Sequence[One]]:
    rest = iter(dict.fromkeys(values))
    while batch := list(islice(rest, size)):
        yield batch
