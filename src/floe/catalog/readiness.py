"""Queries of the triggers about versions and runs, for many processes at once.

The number of queries depends on the number of dates and on the batch size, never on the size of
the catalog.
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
# Databases limit the number of values, and of parts of a union, in one statement.
MAX_VALUES, MAX_PARTS = 500, 50


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


class TagQuery(NamedTuple):
    """A query for the newest READY versions of a dataset up to a date."""

    dataset_id: int
    until: date
    since: date | None = None
    limit: int = 1


def page_bounds(session: Session, after: int, size: int) -> tuple[int, int]:
    """Return the first and last position of a page of the change log.

    If the log ends before `after`, the catalog was replaced: read it from the start.
    """
    last = last_position(session)
    start = after if after <= last else 0
    return start, min(start + size, last)


def list_ready_changes(session: Session, after: int, until: int) -> list[ReadyChange]:
    """Return the versions that became READY at log positions in (after, until]."""
    rows: Any = session.execute(
        select(
            Change.position,
            Dataset.namespace,
            Dataset.name.label("dataset"),
            Change.business_date,
            Change.dataset_version_id,
        )
        .join(Dataset, Dataset.dataset_id == Change.dataset_id)
        .where(Change.position > after, Change.position <= until, Change.kind == VERSION_READY)
        .where(Change.business_date.is_not(None), Change.dataset_version_id.is_not(None))
        .order_by(Change.position)
    )
    return [ReadyChange(**row._mapping) for row in rows]


def list_failed_changes(session: Session, after: int, until: int) -> list[FailedChange]:
    """Return the runs that failed at log positions in (after, until]."""
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
    return [FailedChange(**row._mapping) for row in rows]


def find_dataset_ids(session: Session, full_names: Iterable[str]) -> dict[str, int]:
    """Return the ids of datasets by full name."""
    dataset_ids: dict[str, int] = {}
    for names in _batches(full_names, MAX_VALUES):
        rows: Any = session.execute(
            select(Dataset.full_name, Dataset.dataset_id).where(Dataset.full_name.in_(names))
        )
        dataset_ids |= dict(map(tuple, rows))
    return dataset_ids


def tags_on(session: Session, day: date, dataset_ids: Iterable[int]) -> dict[int, str]:
    """Return the tag of each dataset's READY version for a date."""
    tags: dict[int, str] = {}
    for batch in _batches(dataset_ids, MAX_VALUES):
        rows: Any = session.execute(
            select(DatasetVersion.dataset_id, DatasetVersion.version_tag)
            .where(
                DatasetVersion.dataset_id.in_(batch),
                DatasetVersion.business_date == day,
                DatasetVersion.state == READY,
            )
            .order_by(DatasetVersion.dataset_version_id)
        )
        # If there are several partitions, the newest version wins, as for a run.
        tags |= dict(map(tuple, rows))
    return tags


def tags_until(session: Session, queries: Iterable[TagQuery]) -> dict[TagQuery, list[str]]:
    """Return the tags that each query matches, newest first."""
    tags: defaultdict[TagQuery, list[str]] = defaultdict(list)
    for batch in _batches(queries, MAX_PARTS):
        parts = [_newest(index, query) for index, query in enumerate(batch)]
        rows: Any = session.execute(union_all(*parts))
        ordered = sorted(rows, key=lambda row: (row.business_date, row.version_id), reverse=True)
        for row in ordered:
            tags[batch[row.part]].append(row.version_tag)
    return dict(tags)


def _newest(part: int, wanted: TagQuery) -> Any:
    query: Any = select(
        literal_column(str(part)).label("part"),
        DatasetVersion.version_tag,
        DatasetVersion.business_date,
        DatasetVersion.dataset_version_id.label("version_id"),
    ).where(
        DatasetVersion.dataset_id == wanted.dataset_id,
        DatasetVersion.state == READY,
        DatasetVersion.business_date <= wanted.until,
    )
    if wanted.since is not None:
        query = query.where(DatasetVersion.business_date >= wanted.since)
    newest = query.order_by(
        DatasetVersion.business_date.desc(), DatasetVersion.dataset_version_id.desc()
    )
    # A subquery, because a part of a union can have ORDER BY and LIMIT only in parentheses.
    return select(newest.limit(wanted.limit).subquery())


def dates_after(session: Session, day: date, dataset_ids: Iterable[int]) -> dict[int, set[date]]:
    """Return the later dates for which each dataset has a READY version."""
    dates: defaultdict[int, set[date]] = defaultdict(set)
    for batch in _batches(dataset_ids, MAX_VALUES):
        rows: Any = session.execute(
            select(DatasetVersion.dataset_id, DatasetVersion.business_date)
            .where(
                DatasetVersion.dataset_id.in_(batch),
                DatasetVersion.business_date > day,
                DatasetVersion.state == READY,
            )
            .distinct()
        )
        for dataset_id, later in rows:
            dates[dataset_id].add(later)
    return dict(dates)


def dates_run_after(
    session: Session, day: date, process_keys: Iterable[str]
) -> dict[str, set[date]]:
    """Return the later dates for which each process has a run in any state."""
    dates: defaultdict[str, set[date]] = defaultdict(set)
    for keys in _batches(process_keys, MAX_VALUES):
        rows: Any = session.execute(
            select(Process.process_key, ProcessRun.business_date)
            .join(ProcessRun, ProcessRun.process_id == Process.process_id)
            .where(Process.process_key.in_(keys), ProcessRun.business_date > day)
            .distinct()
        )
        for key, later in rows:
            dates[key].add(later)
    return dict(dates)


def facets_of_runs(
    session: Session, day: date, process_keys: Iterable[str]
) -> dict[str, list[Any]]:
    """Return the facets of each process's runs for a date, newest run first.

    Failed and cancelled runs are left out: they created nothing from what they read.
    """
    facets_by_key: defaultdict[str, list[Any]] = defaultdict(list)
    for keys in _batches(process_keys, MAX_VALUES):
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
            facets_by_key[key].append(facets)
    return dict(facets_by_key)


Value = TypeVar("Value")


def _batches(values: Iterable[Value], size: int) -> Iterator[Sequence[Value]]:
    rest = iter(dict.fromkeys(values))
    while batch := list(islice(rest, size)):
        yield batch
