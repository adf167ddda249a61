"""Apply the date rules to stored datasets: fold dated names, date versions.

New events are read by these rules as they arrive; this applies them to earlier ones. Every
transaction leaves a consistent state, so an interrupted fold can simply be started again.
"""

from collections import defaultdict
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import String, literal, select, type_coerce, update
from sqlalchemy.orm import Session

from floe.catalog.audit import record_audit
from floe.catalog.database import Catalog
from floe.catalog.datasets import ACTIVE, new_dataset
from floe.catalog.joins.joining import absorb_datasets, choose_ready_versions, own_tag
from floe.catalog.tables import Dataset, DatasetAlias, DatasetVersion, ProcessRun, RunInput
from floe.spec.dates import SEPARATOR, DateRules, Part, below
from floe.spec.identity import DatasetId, version_tag

# How many datasets are folded in one transaction.
MOST_AT_ONCE = 200
SUBSET = "subset"
LocationsOf = Callable[[dict[str, Any]], Sequence[str]]


@dataclass(frozen=True)
class Fold:
    """Datasets to fold into one, or a dataset whose versions get other dates."""

    dataset: str
    folded: Sequence[str]
    """The full names of the datasets to fold into it."""
    dates: Sequence[date]
    """The business dates that its versions get."""
    redated: int = 0
    """The count of versions of the dataset itself that get another date."""


def plan_folds(catalog: Catalog, dates: DateRules, locations_of: LocationsOf) -> list[Fold]:
    """List what `fold_dates` would do, without changing anything."""
    with catalog.reading() as session:
        folds = [
            Fold(full_name, [row.full_name for row in rows], _dates_of(rows, dates))
            for full_name, rows in sorted(_groups(session, dates).items())
        ]
        for dataset_id, full_name in _with_subsets(session):
            wrong = _misdated(session, dataset_id, dates, locations_of)
            if wrong:
                days = sorted({part.business_date for _, part in wrong if part.business_date})
                folds.append(Fold(full_name, [], days, redated=len(wrong)))
    return folds


def fold_dates(
    catalog: Catalog, dates: DateRules, locations_of: LocationsOf, actor: str
) -> Generator[Fold, None, None]:
    """Apply what `plan_folds` lists; yield each fold after its commit."""
    with catalog.reading() as session:
        groups = {
            name: [row.dataset_id for row in rows] for name, rows in _groups(session, dates).items()
        }
    for full_name in sorted(groups):
        for start in range(0, len(groups[full_name]), MOST_AT_ONCE):
            dataset_ids = groups[full_name][start : start + MOST_AT_ONCE]
            with catalog.writing() as session:
                fold = _fold(session, dataset_ids, dates, actor)
            if fold is not None:
                yield fold
    with catalog.reading() as session:
        located = _with_subsets(session)
    for dataset_id, full_name in located:
        with catalog.writing() as session:
            wrong = _misdated(session, dataset_id, dates, locations_of)
            if wrong:
                _redate(session, wrong, actor, full_name)
        if wrong:
            days = sorted({part.business_date for _, part in wrong if part.business_date})
            yield Fold(full_name, [], days, redated=len(wrong))


def _groups(session: Session, dates: DateRules) -> dict[str, list[Dataset]]:
    """Group datasets with dated names by the name that they are folded into."""
    groups: defaultdict[str, list[Dataset]] = defaultdict(list)
    # The column is stored as Y or N, for which `IS false` is invalid SQL.
    false_value = literal(False, Dataset.curated.type)
    names = select(Dataset.dataset_id, Dataset.namespace, Dataset.name).where(
        Dataset.project_id.is_(None), Dataset.curated == false_value
    )
    names_by_id: dict[int, str] = {}
    for dataset_id, namespace, name in session.execute(names):
        dated = dates.fold(name)
        if dated is not None:
            names_by_id[dataset_id] = DatasetId(namespace, dated.name).full_name
    dataset_ids = list(names_by_id)
    for start in range(0, len(dataset_ids), MOST_AT_ONCE):
        some = dataset_ids[start : start + MOST_AT_ONCE]
        for row in session.scalars(select(Dataset).where(Dataset.dataset_id.in_(some))):
            groups[names_by_id[row.dataset_id]].append(row)
    return groups


def _dates_of(rows: Sequence[Dataset], dates: DateRules) -> list[date]:
    folded = (dates.fold(row.name) for row in rows)
    return sorted({dated.business_date for dated in folded if dated is not None})


def _fold(
    session: Session, dataset_ids: Sequence[int], dates: DateRules, actor: str
) -> Fold | None:
    # Read again, because another writer may have declared or folded some of them.
    query = select(Dataset).where(Dataset.dataset_id.in_(dataset_ids))
    rows = [
        row
        for row in session.scalars(query.order_by(Dataset.dataset_id))
        if row.project_id is None and not row.curated and dates.fold(row.name)
    ]
    if not rows:
        return None
    names, days = [row.full_name for row in rows], _dates_of(rows, dates)
    for row in rows:
        _date_versions(session, row, dates)
    target = _target(session, rows[0], dates)
    absorb_datasets(session, target, rows, actor=actor, reason="fold of dates in names")
    record_audit(
        session,
        actor,
        "fold",
        "dataset",
        target.full_name,
        before={"datasets": names},
        after={"dataset": target.full_name, "dates": [day.isoformat() for day in days]},
    )
    return Fold(target.full_name, names, days)


def _target(session: Session, row: Dataset, dates: DateRules) -> Dataset:
    """Return the dataset that others are folded into; create it if needed."""
    dated = dates.fold(row.name)
    assert dated is not None
    full_name = DatasetId(row.namespace, dated.name).full_name
    known = session.scalar(select(Dataset).where(Dataset.full_name == full_name))
    if known is not None:
        return known
    alias = session.get(DatasetAlias, (row.namespace, dated.name))
    if alias is not None:
        return session.get_one(Dataset, alias.dataset_id)
    dataset = new_dataset(
        row.namespace, dated.name, status=ACTIVE, actor=row.created_by or "events"
    )
    for column in ("description", "owner_team", "owner_email", "schema_hash", "timezone"):
        setattr(dataset, column, getattr(row, column))
    session.add(dataset)
    session.flush()
    return dataset


def _date_versions(session: Session, row: Dataset, dates: DateRules) -> None:
    """Date versions by the dataset's name, unless their run reported a date."""
    dated = dates.fold(row.name)
    assert dated is not None
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == row.dataset_id)
    versions = list(session.scalars(query.order_by(DatasetVersion.produced_at)))
    part = Part(dated.business_date, dated.partition)
    dated_by_run = _dated_by_run(session, versions)
    own = {
        version.dataset_version_id
        for version in versions
        if version.version_tag == own_tag(version)
    }
    for version in versions:
        if version.dataset_version_id not in own:
            label = filter(None, (dated.business_date.isoformat(), dated.partition))
            _retag(session, version, SEPARATOR.join([*label, version.version_tag])[:300])
    dated_here = [
        (version, part)
        for version in versions
        if version.dataset_version_id in own and version.dataset_version_id not in dated_by_run
    ]
    _move_to_parts(session, dated_here, versions)
    for version in versions:
        if version.dataset_version_id not in own and version.dataset_version_id not in dated_by_run:
            version.business_date, version.partition_key = part.business_date, _key(part)
    session.flush()


def _dated_by_run(session: Session, versions: Sequence[DatasetVersion]) -> set[int]:
    """Return the ids of versions whose run reported a business date."""
    runs = {version.produced_by_run_id for version in versions if version.produced_by_run_id}
    query = select(ProcessRun.run_uuid, ProcessRun.facets_json).where(ProcessRun.run_uuid.in_(runs))
    run_dates = {
        run_uuid
        for run_uuid, facets in session.execute(query)
        if isinstance(facets, dict) and isinstance(facets.get("floe"), dict)
        if facets["floe"].get("businessDate")
    }
    return {
        version.dataset_version_id
        for version in versions
        if version.produced_by_run_id in run_dates
    }


def _move_to_parts(
    session: Session,
    moved: Sequence[tuple[DatasetVersion, Part]],
    versions: Sequence[DatasetVersion],
) -> None:
    """Move versions to other dates or partitions, each with the next free tag there."""
    taken = {version.version_tag for version in versions}
    for version, part in moved:
        key = _key(part) or part.business_date
        if key is None or (version.business_date, version.partition_key) == (
            part.business_date,
            _key(part),
        ):
            continue
        version.business_date, version.partition_key = part.business_date, _key(part)
        version.seq = 1
        while version_tag(key, version.seq) in taken:
            version.seq += 1
        tag = version_tag(key, version.seq)
        taken.add(tag)
        _retag(session, version, tag)


def _key(part: Part) -> str | None:
    return None if part.partition is None else f"{part.business_date}{SEPARATOR}{part.partition}"


def _retag(session: Session, version: DatasetVersion, tag: str) -> None:
    version.version_tag = tag
    read = update(RunInput).where(RunInput.dataset_version_id == version.dataset_version_id)
    session.execute(read.values(version_tag=tag))


def _with_subsets(session: Session) -> list[tuple[int, str]]:
    """List undeclared datasets that have a version with a subset facet."""
    text = type_coerce(DatasetVersion.metadata_json, String)
    located = select(DatasetVersion.dataset_id).where(text.contains(f'"{SUBSET}"'))
    query = select(Dataset.dataset_id, Dataset.full_name).where(
        Dataset.dataset_id.in_(located), Dataset.project_id.is_(None)
    )
    return [
        (dataset_id, name)
        for dataset_id, name in session.execute(query.order_by(Dataset.full_name))
    ]


def _misdated(
    session: Session, dataset_id: int, dates: DateRules, locations_of: LocationsOf
) -> list[tuple[DatasetVersion, Part]]:
    """Return versions with a generated tag and the wrong date for their location."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    versions = list(session.scalars(query.order_by(DatasetVersion.produced_at)))
    name = session.get_one(Dataset, dataset_id).name
    dated_by_run = _dated_by_run(session, versions)
    wrong = []
    for version in versions:
        facets = version.metadata_json if isinstance(version.metadata_json, dict) else {}
        subset = facets.get(SUBSET)
        if not isinstance(subset, dict) or version.dataset_version_id in dated_by_run:
            continue
        parts = {dates.read_part(below(name, location)) for location in locations_of(subset)}
        part = parts.pop() if len(parts) == 1 else Part()
        is_own = version.version_tag == own_tag(version)
        if is_own and part.business_date and version.business_date != part.business_date:
            wrong.append((version, part))
    return wrong


def _redate(
    session: Session, wrong: Sequence[tuple[DatasetVersion, Part]], actor: str, full_name: str
) -> None:
    before = {version.dataset_version_id: version.version_tag for version, _ in wrong}
    dataset_id = wrong[0][0].dataset_id
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    versions = list(session.scalars(query))
    _move_to_parts(session, wrong, versions)
    choose_ready_versions(versions)
    record_audit(
        session,
        actor,
        "fold",
        "dataset",
        full_name,
        before={"versions": list(before.values())},
        after={"versions": [version.version_tag for version, _ in wrong]},
    )
