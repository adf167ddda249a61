"""Join two datasets that turned out to be one: what hung on the second hangs on the first.

Nothing is lost. The second's name stays as an alias; where both had the same thing (an edge, a
tag, a check) the first one's stays, with the wider span of sightings.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from floe.catalog.datasets import add_alias, record_dataset_event
from floe.catalog.search.documents import index_datasets
from floe.catalog.stores import store_of
from floe.catalog.tables import (
    Change,
    ColumnEdge,
    ColumnSighting,
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetRegistration,
    DatasetTag,
    DatasetVersion,
    LineageEdge,
    ObservedFacet,
    QualityCheckDef,
    QualityCheckResult,
    RunInput,
    SchemaSighting,
    Table,
)
from floe.catalog.versions import READY, SUPERSEDED
from floe.spec.identity import version_tag

_EDGE = ("edge_role", "known_by")
_COLUMNS = ("source_column", "target_column", "process_id", "kind", "lineage_hash")
# Each table that names a dataset: the column that does, and the columns by which two rows are
# the same but for it. No such columns: no two rows are ever the same.
PLACES: tuple[tuple[type[Table], str, tuple[str, ...]], ...] = (
    (DatasetEvent, "dataset_id", ()),
    (DatasetRegistration, "dataset_id", ()),
    (Change, "dataset_id", ()),
    (DatasetAlias, "dataset_id", ()),
    (DatasetTag, "dataset_id", ("tag",)),
    (RunInput, "dataset_id", ("run_id", "version_tag")),
    (SchemaSighting, "dataset_id", ("schema_hash",)),
    (ColumnSighting, "dataset_id", ("process_id", "lineage_hash")),
    (ColumnEdge, "source_dataset_id", ("target_dataset_id", *_COLUMNS)),
    (ColumnEdge, "target_dataset_id", ("source_dataset_id", *_COLUMNS)),
    (LineageEdge, "source_id", ("source_type", "target_type", "target_id", *_EDGE)),
    (LineageEdge, "target_id", ("target_type", "source_type", "source_id", *_EDGE)),
    (ObservedFacet, "owner_id", ("owner_type", "facet")),
)


def join_datasets(session: Session, first: Dataset, second: Dataset) -> Dataset:
    """Make one dataset of two and return it: the declared, else the curated, else the older one."""
    kept, gone = (first, second) if _rank(first) <= _rank(second) else (second, first)
    absorb_datasets(session, kept, [gone])
    return kept


def absorb_datasets(session: Session, kept: Dataset, gone: Sequence[Dataset]) -> None:
    """Hand all that hangs on some datasets to another; their names stay as its aliases."""
    numbers = [dataset.dataset_id for dataset in gone]
    _join_versions(session, kept.dataset_id, numbers)
    _join_checks(session, kept.dataset_id, numbers)
    for table, column, same in PLACES:
        _move_rows(session, table, column, same, kept=kept.dataset_id, gone=numbers)
    for dataset in gone:
        detail = {"joined": dataset.full_name}
        record_dataset_event(session, kept.dataset_id, "JOINED", None, detail)
    names = [(dataset.namespace, dataset.name) for dataset in gone]
    store_of(session).drop_documents(session, numbers)
    session.flush()
    for dataset in gone:
        session.delete(dataset)
    session.flush()
    for namespace, name in names:
        add_alias(session, kept.dataset_id, namespace, name)
    index_datasets(session, [kept.dataset_id])


def _rank(dataset: Dataset) -> tuple[bool, bool, int]:
    # Numbers are given in the order in which datasets became known.
    return dataset.project_id is None, not dataset.curated, dataset.dataset_id


def _move_rows(
    session: Session,
    table: type[Table],
    column: str,
    same: Sequence[str],
    *,
    kept: int,
    gone: Sequence[int],
) -> None:
    """Hand rows over; one that the kept dataset has too is merged into that."""
    rows = _rows_of(session, table, column, gone)
    there = _rows_of(session, table, column, [kept]) if same else []
    twins = {_key(row, same): row for row in there}
    for row in rows:
        twin = twins.get(_key(row, same)) if same else None
        if twin is None:
            setattr(row, column, kept)
            twins[_key(row, same)] = row
        else:
            _merge_into(twin, row)
            session.delete(row)
    session.flush()


def _rows_of(
    session: Session, table: type[Table], column: str, dataset_ids: Sequence[int]
) -> list[Any]:
    query = select(table).where(getattr(table, column).in_(dataset_ids))
    # Edges and facets belong to datasets and to processes, which have numbers of their own.
    kind = {"source_id": "source_type", "target_id": "target_type", "owner_id": "owner_type"}
    if column in kind:
        query = query.where(getattr(table, kind[column]) == "DATASET")
    return list(session.scalars(query))


def _key(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def _merge_into(twin: Any, row: Any) -> None:
    if hasattr(row, "first_seen"):
        twin.first_seen = min(twin.first_seen, row.first_seen)
        twin.last_seen = max(twin.last_seen, row.last_seen)
    newer = isinstance(row, ObservedFacet) and (row.seen_at, row.facet_hash) > (
        twin.seen_at,
        twin.facet_hash,
    )
    if newer:
        twin.seen_at, twin.facet_hash, twin.body = row.seen_at, row.facet_hash, row.body


def _join_versions(session: Session, kept: int, gone: Sequence[int]) -> None:
    there = _rows_of(session, DatasetVersion, "dataset_id", [kept])
    taken = {row.version_tag: row for row in there}
    for row in _rows_of(session, DatasetVersion, "dataset_id", gone):
        twin = taken.get(row.version_tag)
        if twin is not None and row.version_tag != own_tag(row):
            # The producer named it, so it is the same version under both names.
            _refer_to(session, "dataset_version_id", row, twin)
            continue
        row.dataset_id = kept
        while row.version_tag in taken:
            row.seq += 1
            row.version_tag = own_tag(row)
        taken[row.version_tag] = row
    session.flush()
    settle_versions(list(taken.values()))


def own_tag(row: DatasetVersion) -> str:
    """Return the tag that floe gives a version whose producer gave it none."""
    return version_tag(row.partition_key or row.business_date or "", row.seq)


def settle_versions(versions: Sequence[DatasetVersion]) -> None:
    """Let the newest version of each date and partition be READY, and the others superseded."""
    live = defaultdict(list)
    for version in versions:
        if version.state in (READY, SUPERSEDED):
            live[version.business_date, version.partition_key].append(version)
    for same_date in live.values():
        newest = max(same_date, key=lambda one: (one.produced_at, one.produced_by_run_id or ""))
        for version in same_date:
            version.state = READY if version is newest else SUPERSEDED


def _join_checks(session: Session, kept: int, gone: Sequence[int]) -> None:
    there = _rows_of(session, QualityCheckDef, "dataset_id", [kept])
    taken = {row.name: row for row in there}
    for row in _rows_of(session, QualityCheckDef, "dataset_id", gone):
        if row.name in taken:
            _refer_to(session, "qdef_id", row, taken[row.name])
        else:
            row.dataset_id = kept
            taken[row.name] = row
    session.flush()


def _refer_to(session: Session, column: str, row: Any, twin: Any) -> None:
    """Let whatever names a row name its twin, and drop the row."""
    tables: dict[str, tuple[type[Table], ...]] = {
        "dataset_version_id": (DatasetEvent, Change, RunInput, QualityCheckResult),
        "qdef_id": (QualityCheckResult,),
    }
    for table in tables[column]:
        at = getattr(table, column)
        named = update(table).where(at == getattr(row, column))
        session.execute(named.values({column: getattr(twin, column)}))
    session.delete(row)
    session.flush()
