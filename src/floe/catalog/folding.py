"""Apply the rules for dates to what is stored: fold dated names into one dataset, date versions.

Events are read by the rules as they arrive; this does the same to what arrived before. Each
transaction leaves a whole state, and what is done is not found again: a fold that was cut off
goes on where it stopped.
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
from floe.catalog.joining import absorb_datasets, own_tag, settle_versions
from floe.catalog.tables import Dataset, DatasetAlias, DatasetVersion, ProcessRun, RunInput
from floe.spec.dates import SEPARATOR, DateRules, Part, below
from floe.spec.identity import DatasetId, version_tag

# How many datasets are folded in one transaction.
MOST_AT_ONCE = 200
SUBSET = "subset"
LocationsOf = Callable[[dict[str, Any]], Sequence[str]]


@dataclass(frozen=True)
class Fold:
    """Datasets that become one, or one whose versions get other dates."""

    dataset: str
    folded: Sequence[str]
    """The full names of the datasets that become part of it."""
    dates: Sequence[date]
    """The business dates that its versions get."""
    redated: int = 0
    """How many versions of the dataset itself get another date."""


def plan_folds(catalog: Catalog, dates: DateRules, locations_of: LocationsOf) -> list[Fold]:
    """List what a fold would do, without doing it."""
    with catalog.reading() as session:
        folds = [
            Fold(full_name, [row.full_name for row in rows], _dates_of(rows, dates))
            for full_name, rows in sorted(_groups(session, dates).items())
        ]
        for number, full_name in _with_subsets(session):
            wrong = _misdated(session, number, dates, locations_of)
            if wrong:
                days = sorted({part.business_date for _, part in wrong if part.business_date})
                folds.append(Fold(full_name, [], days, redated=len(wrong)))
    return folds


def fold_dates(
    catalog: Catalog, dates: DateRules, locations_of: LocationsOf, actor: str
) -> Generator[Fold, None, None]:
    """Do what `plan_folds` lists, and hand over each part of it after its commit."""
    with catalog.reading() as session:
        groups = {
            name: [row.dataset_id for row in rows] for name, rows in _groups(session, dates).items()
        }
    for full_name in sorted(groups):
        for start in range(0, len(groups[full_name]), MOST_AT_ONCE):
            numbers = groups[full_name][start : start + MOST_AT_ONCE]
            with catalog.writing() as session:
                fold = _fold(session, numbers, dates, actor)
            if fold is not None:
                yield fold
    with catalog.reading() as session:
        located = _with_subsets(session)
    for number, full_name in located:
        with catalog.writing() as session:
            wrong = _misdated(session, number, dates, locations_of)
            if wrong:
                _redate(session, wrong, actor, full_name)
        if wrong:
            days = sorted({part.business_date for _, part in wrong if part.business_date})
            yield Fold(full_name, [], days, redated=len(wrong))


def _groups(session: Session, dates: DateRules) -> dict[str, list[Dataset]]:
    """Group the datasets whose names have dates by the name that they get."""
    groups: defaultdict[str, list[Dataset]] = defaultdict(list)
    # `IS false` is not the SQL of a column that holds Y or N.
    false_value = literal(False, Dataset.curated.type)
    names = select(Dataset.dataset_id, Dataset.namespace, Dataset.name).where(
        Dataset.project_id.is_(None), Dataset.curated == false_value
    )
    numbers: dict[int, str] = {}
    for number, namespace, name in session.execute(names):
        dated = dates.fold(name)
        if dated is not None:
            numbers[number] = DatasetId(namespace, dated.name).full_name
    found = list(numbers)
    for start in range(0, len(found), MOST_AT_ONCE):
        some = found[start : start + MOST_AT_ONCE]
        for row in session.scalars(select(Dataset).where(Dataset.dataset_id.in_(some))):
            groups[numbers[row.dataset_id]].append(row)
    return groups


def _dates_of(rows: Sequence[Dataset], dates: DateRules) -> list[date]:
    found = (dates.fold(row.name) for row in rows)
    return sorted({dated.business_date for dated in found if dated is not None})


def _fold(session: Session, numbers: Sequence[int], dates: DateRules, actor: str) -> Fold | None:
    # Read again: somebody may have declared or folded some of them since.
    query = select(Dataset).where(Dataset.dataset_id.in_(numbers))
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
    """Find the dataset that others are folded into, or make it."""
    dated = dates.fold(row.name)
    assert dated is not None
    full_name = DatasetId(row.namespace, dated.name).full_name
    found = session.scalar(select(Dataset).where(Dataset.full_name == full_name))
    if found is not None:
        return found
    alias = session.get(DatasetAlias, (row.namespace, dated.name))
    if alias is not None:
        return session.get_one(Dataset, alias.dataset_id)
    made = new_dataset(row.namespace, dated.name, status=ACTIVE, actor=row.created_by or "events")
    for column in ("description", "owner_team", "owner_email", "schema_hash", "timezone"):
        setattr(made, column, getattr(row, column))
    session.add(made)
    session.flush()
    return made


def _date_versions(session: Session, row: Dataset, dates: DateRules) -> None:
    """Give the versions of a dated name its date, unless a run or a producer gave them one."""
    dated = dates.fold(row.name)
    assert dated is not None
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == row.dataset_id)
    versions = list(session.scalars(query.order_by(DatasetVersion.produced_at)))
    part = Part(dated.business_date, dated.partition)
    said = _dated_by_run(session, versions)
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
        if version.dataset_version_id in own and version.dataset_version_id not in said
    ]
    _move_to_parts(session, dated_here, versions)
    for version in versions:
        if version.dataset_version_id not in own and version.dataset_version_id not in said:
            version.business_date, version.partition_key = part.business_date, _key(part)
    session.flush()


def _dated_by_run(session: Session, versions: Sequence[DatasetVersion]) -> set[int]:
    """Return the versions whose run said outright for which date it ran."""
    runs = {version.produced_by_run_id for version in versions if version.produced_by_run_id}
    query = select(ProcessRun.run_uuid, ProcessRun.facets_json).where(ProcessRun.run_uuid.in_(runs))
    said = {
        run_uuid
        for run_uuid, facets in session.execute(query)
        if isinstance(facets, dict) and isinstance(facets.get("floe"), dict)
        if facets["floe"].get("businessDate")
    }
    return {
        version.dataset_version_id for version in versions if version.produced_by_run_id in said
    }


def _move_to_parts(
    session: Session,
    moved: Sequence[tuple[DatasetVersion, Part]],
    versions: Sequence[DatasetVersion],
) -> None:
    """Give versions their part, and the next free tag of it."""
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
    """List the datasets of which a version has a subset facet, and that nobody declares."""
    text = type_coerce(DatasetVersion.metadata_json, String)
    located = select(DatasetVersion.dataset_id).where(text.contains(f'"{SUBSET}"'))
    query = select(Dataset.dataset_id, Dataset.full_name).where(
        Dataset.dataset_id.in_(located), Dataset.project_id.is_(None)
    )
    return [(number, name) for number, name in session.execute(query.order_by(Dataset.full_name))]


def _misdated(
    session: Session, dataset_id: int, dates: DateRules, locations_of: LocationsOf
) -> list[tuple[DatasetVersion, Part]]:
    """Return versions with floe's own tag that lie at one date and are stored under another."""
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    versions = list(session.scalars(query.order_by(DatasetVersion.produced_at)))
    name = session.get_one(Dataset, dataset_id).name
    said = _dated_by_run(session, versions)
    wrong = []
    for version in versions:
        facets = version.metadata_json if isinstance(version.metadata_json, dict) else {}
        subset = facets.get(SUBSET)
        if not isinstance(subset, dict) or version.dataset_version_id in said:
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
    settle_versions(versions)
    record_audit(
        session,
        actor,
        "fold",
        "dataset",
        full_name,
        before={"versions": list(before.values())},
        after={"versions": [version.version_tag for version, _ in wrong]},
    )
