"""Join two entries for the same dataset: move everything from one to the other.

Nothing is lost. The name of the joined dataset becomes an alias. If both have the same edge, tag or
check, one row stays, with the wider span of sightings. A journal of every join records what was
moved, merged and changed, so that `splitting` can undo it. Many joins at once take as many
statements as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import AuditRecord, record_audits
from floe.catalog.changes import HEAD_ID
from floe.catalog.joins.journal import (
    CHECK_REFERENCES,
    CHECKS,
    LINKS,
    VERSION_REFERENCES,
    VERSIONS,
    Journal,
    Link,
    key_names,
    row_to_json,
)
from floe.catalog.search_index import index_datasets
from floe.catalog.stores import store_of
from floe.catalog.tables import (
    ChangeHead,
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetJoin,
    DatasetVersion,
    DriftClaim,
    ObservedFacet,
    Table,
)
from floe.catalog.versions import EXTERNAL, READY, SUPERSEDED, WRITTEN
from floe.spec.identity import version_tag

LIVE = (READY, SUPERSEDED)

# A drift claim that two entries are the same dataset.
SAME_DATASET = "SAME_DATASET"


def is_managed(dataset: Dataset) -> bool:
    """Tell whether a dataset is declared, curated or written by floe."""
    return dataset.project_id is not None or dataset.curated or dataset.floe_writes


def rank(dataset: Dataset) -> tuple[bool, bool, bool, int]:
    """Sort key: declared, then written by floe, then curated, then older datasets."""
    # Ids ascend in the order in which datasets were created.
    return (
        dataset.project_id is None,
        not dataset.floe_writes,
        not dataset.curated,
        dataset.dataset_id,
    )


def join_datasets(
    session: Session,
    first: Dataset,
    second: Dataset,
    *,
    actor: str = "events",
    reason: str | None = None,
) -> Dataset:
    """Join two datasets and return the one that is kept, the first by `rank`."""
    kept, gone = (first, second) if rank(first) <= rank(second) else (second, first)
    join_all(session, {gone: kept}, actor=actor, reasons={gone.dataset_id: reason})
    return kept


def absorb_datasets(
    session: Session, kept: Dataset, gone: Sequence[Dataset], *, actor: str, reason: str
) -> None:
    """Join many datasets into one."""
    reasons: dict[int, str | None] = {dataset.dataset_id: reason for dataset in gone}
    join_all(session, dict.fromkeys(gone, kept), actor=actor, reasons=reasons)


def join_all(
    session: Session,
    pairs: Mapping[Dataset, Dataset],
    *,
    actor: str,
    reasons: Mapping[int, str | None],
) -> None:
    """Join many datasets at once: each key is joined into its value."""
    session.flush()
    into = {gone.dataset_id: kept.dataset_id for gone, kept in pairs.items()}
    journals = {gone.dataset_id: Journal(row_to_json(gone)) for gone in pairs}
    for gone, kept in pairs.items():
        journals[gone.dataset_id].kept_floe_writes = kept.floe_writes
    _join_versions(session, pairs, into, journals)
    _join_checks(session, into, journals)
    for link in LINKS:
        _move_rows(session, link, into, journals)
    _repoint_claims(session, into)
    _record_joins(session, pairs, journals, actor, reasons)
    _drop_datasets(session, pairs)
    index_datasets(session, set(into.values()))


def _drop_datasets(session: Session, pairs: Mapping[Dataset, Dataset]) -> None:
    store_of(session).drop_documents(session, [gone.dataset_id for gone in pairs])
    aliases = [
        {
            "namespace": gone.namespace,
            "name": gone.name,
            "dataset_id": kept.dataset_id,
            "created_at": clock.now(),
        }
        for gone, kept in pairs.items()
    ]
    for gone, kept in pairs.items():
        kept.floe_writes = kept.floe_writes or gone.floe_writes
        session.delete(gone)
    session.flush()
    store_of(session).upsert(
        session, DatasetAlias, aliases, key=("namespace", "name"), update=("dataset_id",)
    )
    bump_names_epoch(session)


def bump_names_epoch(session: Session) -> None:
    """Make writers look names up again, because a name now refers to another dataset."""
    session.execute(
        update(ChangeHead)
        .where(ChangeHead.head_id == HEAD_ID)
        .values(names_epoch=ChangeHead.names_epoch + 1)
    )


def _record_joins(
    session: Session,
    pairs: Mapping[Dataset, Dataset],
    journals: Mapping[int, Journal],
    actor: str,
    reasons: Mapping[int, str | None],
) -> None:
    now = clock.now()
    joins = [
        {
            "kept_id": kept.dataset_id,
            "gone_id": gone.dataset_id,
            "gone_name": gone.full_name,
            "joined_at": now,
            "joined_by": actor,
            "moved_json": vars(journals[gone.dataset_id]),
        }
        for gone, kept in pairs.items()
    ]
    events = [
        {
            "dataset_id": kept.dataset_id,
            "event_type": "JOINED",
            "actor": actor,
            "occurred_at": now,
            "detail_json": {"joined": gone.full_name},
        }
        for gone, kept in pairs.items()
    ]
    session.execute(insert(DatasetJoin), joins)
    session.execute(insert(DatasetEvent), events)
    entries = [
        AuditRecord(
            "dataset.join",
            "DATASET",
            kept.full_name,
            before={"datasets": [kept.full_name, gone.full_name]},
            after={"dataset": kept.full_name, "alias": gone.full_name},
            reason=reasons.get(gone.dataset_id),
        )
        for gone, kept in pairs.items()
    ]
    record_audits(session, actor, entries)


def _move_rows(
    session: Session, link: Link, into: Mapping[int, int], journals: Mapping[int, Journal]
) -> None:
    """Move rows to the kept datasets; merge those that the kept dataset has already."""
    rows = _rows_of(session, link, into)
    twins: dict[tuple[Any, ...], Any] = {}
    if link.same and rows:
        for row in _rows_of(session, link, set(into.values())):
            twins[getattr(row, link.column), *_values(row, link.same)] = row
    for row in rows:
        gone = getattr(row, link.column)
        journal, kept = journals[gone], into[gone]
        twin = twins.get((kept, *_values(row, link.same)))
        if link.same and twin is not None:
            journal.merged[link.name].append({"row": row_to_json(row), "twin": row_to_json(twin)})
            _merge_into(twin, row)
            session.delete(row)
            continue
        journal.moved[link.name].append(list(_values(row, link.key)))
        setattr(row, link.column, kept)
        twins[kept, *_values(row, link.same)] = row
    session.flush()


def _repoint_claims(session: Session, into: Mapping[int, int]) -> None:
    """Move drift claims to the kept datasets; delete those that exist there already."""
    listed, columns = sorted({*into, *into.values()}), DriftClaim.__table__.c
    among = store_of(session).among
    claims = session.scalars(
        select(DriftClaim)
        .where(
            among(columns.dataset_id, listed)
            | ((columns.kind == SAME_DATASET) & among(columns.subject_id, listed))
        )
        .order_by(DriftClaim.claim_id)
    ).all()
    taken = {(claim.kind, claim.dataset_id, claim.subject_id) for claim in claims}
    for claim in claims:
        pair = into.get(claim.dataset_id, claim.dataset_id), claim.subject_id
        if claim.kind == SAME_DATASET:
            first, second = pair[0], into.get(claim.subject_id, claim.subject_id)
            pair = min(first, second), max(first, second)
        if pair == (claim.dataset_id, claim.subject_id):
            continue
        if (claim.kind, *pair) in taken or (claim.kind == SAME_DATASET and pair[0] == pair[1]):
            session.delete(claim)
            continue
        taken.add((claim.kind, *pair))
        claim.dataset_id, claim.subject_id = pair
    session.flush()


def _rows_of(session: Session, link: Link, dataset_ids: Iterable[int]) -> list[Any]:
    """Load the rows of datasets, sorted by dataset."""
    rows = session.scalars(select(link.table).where(link.condition(session, dataset_ids))).all()
    return sorted(rows, key=lambda row: getattr(row, link.column))


def _values(row: Any, names: Sequence[str]) -> tuple[Any, ...]:
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


def _join_versions(
    session: Session,
    pairs: Mapping[Dataset, Dataset],
    into: Mapping[int, int],
    journals: Mapping[int, Journal],
) -> None:
    incoming = _rows_of(session, VERSIONS, into)
    if not incoming:
        return
    kept_rows = _rows_of(session, VERSIONS, set(into.values()))
    states = {row.dataset_version_id: row.state for row in (*incoming, *kept_rows)}
    origin = {row.dataset_version_id: row.dataset_id for row in incoming}
    joined_states = {gone.dataset_id: _joined_states(gone, kept) for gone, kept in pairs.items()}
    taken = {(row.dataset_id, row.version_tag): row for row in kept_rows}
    same: dict[int, Any] = {}
    for row in incoming:
        gone, kept = row.dataset_id, into[row.dataset_id]
        twin = taken.get((kept, row.version_tag))
        if twin is not None and row.version_tag != own_tag(row):
            # The tag comes from the producer, so it is the same version under both names.
            same[row.dataset_version_id] = (row, twin)
            continue
        before = {"id": row.dataset_version_id, "tag": row.version_tag, "seq": row.seq}
        journals[gone].versions.append({**before, "state": row.state})
        row.dataset_id = kept
        row.state = joined_states[gone].get(row.state, row.state)
        while (kept, row.version_tag) in taken:
            row.seq += 1
            row.version_tag = own_tag(row)
        taken[kept, row.version_tag] = row
    session.flush()
    _drop_same(session, VERSION_REFERENCES, "dataset_version_id", same, journals)
    changed = _choose_ready(list(taken.values()), {row.dataset_version_id for row in incoming})
    for row in changed:
        if row.dataset_version_id not in origin:
            for journal in _journals_of(row.dataset_id, into, journals):
                before = {"id": row.dataset_version_id, "state": states[row.dataset_version_id]}
                journal.kept_versions.append(before)
    session.flush()


def _joined_states(gone: Dataset, kept: Dataset) -> Mapping[str, str]:
    """Return the new states of versions that move to another dataset.

    They are treated as if they had been announced for that dataset. If floe writes it, they become
    EXTERNAL, so that they never become READY, even if floe's own version is retracted. If its
    versions need validation, they become WRITTEN.
    """
    if kept.floe_writes and not gone.floe_writes:
        return {READY: EXTERNAL, SUPERSEDED: EXTERNAL, WRITTEN: EXTERNAL}
    if kept.needs_validation and not gone.needs_validation:
        return {READY: WRITTEN}
    return {}


def _journals_of(
    kept: int, into: Mapping[int, int], journals: Mapping[int, Journal]
) -> list[Journal]:
    """Return the journal for changes to a kept dataset: that of its first join."""
    return [journals[gone] for gone in sorted(into) if into[gone] == kept][:1]


def own_tag(row: DatasetVersion) -> str:
    """Return the tag that floe generates for a version without a tag of its producer."""
    return version_tag(row.partition_key or row.business_date or "", row.seq)


def _choose_ready(versions: Sequence[DatasetVersion], incoming: set[int]) -> list[DatasetVersion]:
    """Make the newest version of each date and partition READY; return the changed.

    Only dates and partitions that received a READY version are considered.
    """
    affected = {
        _part_of(version)
        for version in versions
        if version.dataset_version_id in incoming and version.state == READY
    }
    return choose_ready_versions([version for version in versions if _part_of(version) in affected])


def _part_of(version: DatasetVersion) -> tuple[Any, ...]:
    return version.dataset_id, version.business_date, version.partition_key


def choose_ready_versions(versions: Sequence[DatasetVersion]) -> list[DatasetVersion]:
    """Make the newest version of each date and partition READY.

    The others become SUPERSEDED. Return the versions that changed.
    """
    live = defaultdict(list)
    for version in versions:
        if version.state in LIVE:
            live[_part_of(version)].append(version)
    changed = []
    for same_part in live.values():
        newest = max(same_part, key=lambda row: (row.produced_at, row.produced_by_run_id or ""))
        for version in same_part:
            state = READY if version is newest else SUPERSEDED
            if version.state != state:
                version.state = state
                changed.append(version)
    return changed


def _join_checks(
    session: Session, into: Mapping[int, int], journals: Mapping[int, Journal]
) -> None:
    incoming = _rows_of(session, CHECKS, into)
    if not incoming:
        return
    taken = {
        (row.dataset_id, row.name): row for row in _rows_of(session, CHECKS, set(into.values()))
    }
    same: dict[int, Any] = {}
    for row in incoming:
        gone, kept = row.dataset_id, into[row.dataset_id]
        twin = taken.setdefault((kept, row.name), row)
        if twin is not row:
            same[row.qdef_id] = (row, twin)
        else:
            row.dataset_id = kept
            journals[gone].checks.append(row.qdef_id)
    session.flush()
    _drop_same(session, CHECK_REFERENCES, "qdef_id", same, journals)


def _drop_same(
    session: Session,
    references: Sequence[type[Table]],
    column: str,
    same: Mapping[int, tuple[Any, Any]],
    journals: Mapping[int, Journal],
) -> None:
    """Point references to a row at its twin, and delete the row."""
    if not same:
        return
    named: defaultdict[int, dict[str, list[Any]]] = defaultdict(dict)
    for table in references:
        listed = store_of(session).among(table.__table__.c[column], sorted(same))
        key = key_names(table)
        for reference in session.scalars(select(table).where(listed)):
            row_id = getattr(reference, column)
            keys = named[row_id].setdefault(table.__tablename__, [])
            keys.append(list(_values(reference, key)))
            setattr(reference, column, getattr(same[row_id][1], column))
    session.flush()
    for row_id, (row, _) in same.items():
        dropped = {"row": row_to_json(row), "named_by": named[row_id]}
        journals[row.dataset_id].dropped[column].append(dropped)
        session.delete(row)
    session.flush()
