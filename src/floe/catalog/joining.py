"""Join datasets that turned out to be one: what hung on one hangs on the other from then on.

Nothing is lost. The name of the one that goes stays as an alias; where both had the same thing
(an edge, a tag, a check) one row stays, with the wider span of sightings. What was moved, merged
and changed is written down with each join, so that `splitting` can undo it. Many joins at once
take as many statements as one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, insert, select, update
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import Deed, record_audits
from floe.catalog.changes import HEAD_ID
from floe.catalog.rows import freeze_row, key_names
from floe.catalog.search.documents import index_datasets
from floe.catalog.stores import store_of
from floe.catalog.tables import (
    Change,
    ChangeHead,
    ColumnEdge,
    ColumnSighting,
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetJoin,
    DatasetRegistration,
    DatasetTag,
    DatasetVersion,
    DriftClaim,
    LineageEdge,
    ObservedFacet,
    QualityCheckDef,
    QualityCheckResult,
    RunInput,
    SchemaSighting,
    Table,
)
from floe.catalog.versions import EXTERNAL, READY, SUPERSEDED, WRITTEN
from floe.spec.identity import version_tag

LIVE = (READY, SUPERSEDED)
# A drift claim that two datasets are one.
SAME_DATASET = "SAME_DATASET"
_EDGE = ("edge_role", "known_by")
_COLUMNS = ("source_column", "target_column", "process_id", "kind", "lineage_hash")


@dataclass(frozen=True)
class Place:
    """A table that names a dataset: the column that does, and how its rows are told apart.

    Two rows that agree in the columns of `same` are one but for the dataset; without such
    columns no two rows are ever the same.
    """

    table: type[Table]
    column: str
    same: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.table.__tablename__}.{self.column}"

    @property
    def key(self) -> tuple[str, ...]:
        """The columns by which a row is found again, besides the one that names the dataset."""
        return tuple(name for name in key_names(self.table) if name != self.column)

    def of(self, session: Session, numbers: Iterable[int]) -> ColumnElement[bool]:
        """Select the rows that name one of these datasets."""
        column = self.table.__table__.c[self.column]
        named = store_of(session).among(column, sorted(numbers))
        # Edges and facets belong to datasets and to processes, which have numbers of their own.
        kind = _KINDS.get(self.column)
        return named & (self.table.__table__.c[kind] == "DATASET") if kind else named


_KINDS = {"source_id": "source_type", "target_id": "target_type", "owner_id": "owner_type"}
PLACES = (
    Place(DatasetEvent, "dataset_id"),
    Place(DatasetRegistration, "dataset_id"),
    Place(Change, "dataset_id"),
    Place(DatasetAlias, "dataset_id"),
    Place(DatasetTag, "dataset_id", ("tag",)),
    Place(RunInput, "dataset_id", ("run_id", "version_tag")),
    Place(SchemaSighting, "dataset_id", ("schema_hash",)),
    Place(ColumnSighting, "dataset_id", ("process_id", "lineage_hash")),
    Place(ColumnEdge, "source_dataset_id", ("target_dataset_id", *_COLUMNS)),
    Place(ColumnEdge, "target_dataset_id", ("source_dataset_id", *_COLUMNS)),
    Place(LineageEdge, "source_id", ("source_type", "target_type", "target_id", *_EDGE)),
    Place(LineageEdge, "target_id", ("target_type", "source_type", "source_id", *_EDGE)),
    Place(ObservedFacet, "owner_id", ("owner_type", "facet")),
    Place(DatasetJoin, "kept_id"),
    Place(DatasetJoin, "split_id"),
)
VERSIONS = Place(DatasetVersion, "dataset_id")
CHECKS = Place(QualityCheckDef, "dataset_id")
# What names a version or a check.
VERSION_REFERENCES: tuple[type[Table], ...] = (
    DatasetEvent,
    Change,
    RunInput,
    QualityCheckResult,
)
CHECK_REFERENCES: tuple[type[Table], ...] = (QualityCheckResult,)


@dataclass
class Journal:
    """What one join did, in values that JSON can hold."""

    dataset: dict[str, Any]
    # By place: the keys of rows that were handed over, and rows that were merged into another.
    moved: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    merged: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    # Versions of either dataset: number, and tag, place and state before and state after.
    versions: list[dict[str, Any]] = field(default_factory=list)
    kept_versions: list[dict[str, Any]] = field(default_factory=list)
    checks: list[int] = field(default_factory=list)
    # Versions and checks that both had: the row that went, and the rows that named it.
    dropped: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    kept_floe_writes: bool = False


def is_settled(dataset: Dataset) -> bool:
    """Say whether people, a project or floe itself answer for a dataset: it is not just seen."""
    return dataset.project_id is not None or dataset.curated or dataset.floe_writes


def rank(dataset: Dataset) -> tuple[bool, bool, bool, int]:
    """Order datasets by which stays in a join: the declared, floe's own, the curated, the older."""
    # Numbers are given in the order in which datasets became known.
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
    """Make one dataset of two and return it: the declared, else the curated, else the older one."""
    kept, gone = (first, second) if rank(first) <= rank(second) else (second, first)
    join_all(session, {gone: kept}, actor=actor, reasons={gone.dataset_id: reason})
    return kept


def absorb_datasets(
    session: Session, kept: Dataset, gone: Sequence[Dataset], *, actor: str, reason: str
) -> None:
    """Join many datasets to one."""
    reasons: dict[int, str | None] = {dataset.dataset_id: reason for dataset in gone}
    join_all(session, dict.fromkeys(gone, kept), actor=actor, reasons=reasons)


def join_all(
    session: Session,
    pairs: Mapping[Dataset, Dataset],
    *,
    actor: str,
    reasons: Mapping[int, str | None],
) -> None:
    """Join many datasets at once: each key goes, and its value stays."""
    session.flush()
    into = {gone.dataset_id: kept.dataset_id for gone, kept in pairs.items()}
    journals = {gone.dataset_id: Journal(freeze_row(gone)) for gone in pairs}
    for gone, kept in pairs.items():
        journals[gone.dataset_id].kept_floe_writes = kept.floe_writes
    _join_versions(session, pairs, into, journals)
    _join_checks(session, into, journals)
    for place in PLACES:
        _move_rows(session, place, into, journals)
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
    """Say that a known name means another dataset now: writers look names up again."""
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
    deeds = [
        Deed(
            "dataset.join",
            "DATASET",
            kept.full_name,
            before={"datasets": [kept.full_name, gone.full_name]},
            after={"dataset": kept.full_name, "alias": gone.full_name},
            reason=reasons.get(gone.dataset_id),
        )
        for gone, kept in pairs.items()
    ]
    record_audits(session, actor, deeds)


def _move_rows(
    session: Session, place: Place, into: Mapping[int, int], journals: Mapping[int, Journal]
) -> None:
    """Hand rows over; one that the kept dataset has too is merged into that."""
    rows = _rows_of(session, place, into)
    twins: dict[tuple[Any, ...], Any] = {}
    if place.same and rows:
        for row in _rows_of(session, place, set(into.values())):
            twins[getattr(row, place.column), *_values(row, place.same)] = row
    for row in rows:
        gone = getattr(row, place.column)
        journal, kept = journals[gone], into[gone]
        twin = twins.get((kept, *_values(row, place.same)))
        if place.same and twin is not None:
            journal.merged[place.name].append({"row": freeze_row(row), "twin": freeze_row(twin)})
            _merge_into(twin, row)
            session.delete(row)
            continue
        journal.moved[place.name].append(list(_values(row, place.key)))
        setattr(row, place.column, kept)
        twins[kept, *_values(row, place.same)] = row
    session.flush()


def _repoint_claims(session: Session, into: Mapping[int, int]) -> None:
    """Let drift claims name the dataset that stayed; one that is there already stays as it is."""
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


def _rows_of(session: Session, place: Place, numbers: Iterable[int]) -> list[Any]:
    """Load the rows of datasets, those of one dataset after the other."""
    rows = session.scalars(select(place.table).where(place.of(session, numbers))).all()
    return sorted(rows, key=lambda row: getattr(row, place.column))


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
            # The producer named it, so it is the same version under both names.
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
    changed = _settle(list(taken.values()), {row.dataset_version_id for row in incoming})
    for row in changed:
        if row.dataset_version_id not in origin:
            for journal in _journals_of(row.dataset_id, into, journals):
                before = {"id": row.dataset_version_id, "state": states[row.dataset_version_id]}
                journal.kept_versions.append(before)
    session.flush()


def _joined_states(gone: Dataset, kept: Dataset) -> Mapping[str, str]:
    """Return the states that versions take on when they move to another dataset.

    They are treated as if they had been announced under the other name. So they never become
    READY where floe writes the versions itself, also not later when floe's own version is
    retracted, and they are validated where versions from outside are.
    """
    if kept.floe_writes and not gone.floe_writes:
        return {READY: EXTERNAL, SUPERSEDED: EXTERNAL, WRITTEN: EXTERNAL}
    if kept.needs_validation and not gone.needs_validation:
        return {READY: WRITTEN}
    return {}


def _journals_of(
    kept: int, into: Mapping[int, int], journals: Mapping[int, Journal]
) -> list[Journal]:
    """Find where a change of a kept dataset's version is noted: with its first join."""
    return [journals[gone] for gone in sorted(into) if into[gone] == kept][:1]


def own_tag(row: DatasetVersion) -> str:
    """Return the tag that floe gives a version whose producer gave it none."""
    return version_tag(row.partition_key or row.business_date or "", row.seq)


def _settle(versions: Sequence[DatasetVersion], incoming: set[int]) -> list[DatasetVersion]:
    """Let the newest version of each date and partition be READY; return those that changed.

    Only dates and partitions for which a version came in are looked at.
    """
    concerned = {
        _part_of(version)
        for version in versions
        if version.dataset_version_id in incoming and version.state == READY
    }
    return settle_versions([version for version in versions if _part_of(version) in concerned])


def _part_of(version: DatasetVersion) -> tuple[Any, ...]:
    return version.dataset_id, version.business_date, version.partition_key


def settle_versions(versions: Sequence[DatasetVersion]) -> list[DatasetVersion]:
    """Let the newest version of each date and partition be READY, and the others superseded.

    Returns those that changed.
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
    """Let whatever names a row name its twin, and drop the row."""
    if not same:
        return
    named: defaultdict[int, dict[str, list[Any]]] = defaultdict(dict)
    for table in references:
        listed = store_of(session).among(table.__table__.c[column], sorted(same))
        key = key_names(table)
        for reference in session.scalars(select(table).where(listed)):
            number = getattr(reference, column)
            keys = named[number].setdefault(table.__tablename__, [])
            keys.append(list(_values(reference, key)))
            setattr(reference, column, getattr(same[number][1], column))
    session.flush()
    for number, (row, _) in same.items():
        dropped = {"row": freeze_row(row), "named_by": named[number]}
        journals[row.dataset_id].dropped[column].append(dropped)
        session.delete(row)
    session.flush()
