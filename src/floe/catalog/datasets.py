"""Datasets: register, update, rename, deprecate and find them.

Each change records a dataset event.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, Unpack

from sqlalchemy import String, and_, bindparam, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.audit import Difference, change_fields
from floe.catalog.errors import AmbiguousDatasetError, DatasetExistsError, DatasetNotFoundError
from floe.catalog.queries import TypedQuery, parse_row_id
from floe.catalog.search import DatasetHit
from floe.catalog.search_index import index_datasets, list_tags_of, suggest_datasets
from floe.catalog.tables import (
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetTag,
    LineageEdge,
    Process,
)
from floe.spec.identity import DatasetId

DRAFT, ACTIVE, DEPRECATED = "DRAFT", "ACTIVE", "DEPRECATED"


class DatasetFields(TypedDict, total=False):
    """The fields of a dataset besides its name."""

    description: str | None
    category: str | None
    default_format: str | None
    owner_team: str | None
    owner_email: str | None
    default_sla_id: int | None
    project_id: int | None
    timezone: str | None
    needs_validation: bool
    curated: bool
    floe_writes: bool
    schema_hash: str | None
    declaration_json: Any


def create_dataset(
    session: Session,
    namespace: str,
    name: str,
    *,
    status: str = ACTIVE,
    actor: str | None = None,
    **values: Unpack[DatasetFields],
) -> Dataset:
    """Register a dataset; raise DatasetExistsError if the name is taken."""
    full_name = DatasetId(namespace, name).full_name
    if session.scalar(select(Dataset.dataset_id).where(Dataset.full_name == full_name)):
        raise DatasetExistsError(full_name)
    dataset = new_dataset(namespace, name, status=status, actor=actor, **values)
    session.add(dataset)
    session.flush()
    record_dataset_event(session, dataset.dataset_id, "REGISTERED", actor, {"status": status})
    index_datasets(session, [dataset.dataset_id])
    return dataset


def new_dataset(
    namespace: str,
    name: str,
    *,
    status: str,
    actor: str | None,
    **values: Unpack[DatasetFields],
) -> Dataset:
    """Build the row of a new dataset without storing it."""
    values.setdefault("needs_validation", False)
    return Dataset(
        namespace=namespace,
        name=name,
        full_name=DatasetId(namespace, name).full_name,
        status=status,
        created_by=actor,
        created_at=clock.now(),
        **values,
    )


def update_dataset(
    session: Session, dataset: Dataset, *, actor: str | None = None, **values: Unpack[DatasetFields]
) -> Difference:
    """Update the fields that differ; return them with their old values."""
    change = change_fields(dataset, values)
    if change:
        detail = {"changed": sorted(change.after)}
        record_dataset_event(session, dataset.dataset_id, "UPDATED", actor, detail)
        index_datasets(session, [dataset.dataset_id])
    return change


def set_status(
    session: Session, dataset: Dataset, status: str, *, actor: str | None = None
) -> bool:
    """Set a dataset's status; return whether it changed."""
    if dataset.status == status:
        return False
    before, dataset.status, dataset.updated_at = dataset.status, status, clock.now()
    detail = {"from": before, "to": status}
    record_dataset_event(session, dataset.dataset_id, status_event(status), actor, detail)
    return True


def status_event(status: str) -> str:
    """Return the event type for a new status."""
    return {ACTIVE: "ACTIVATED", DEPRECATED: "DEPRECATED", DRAFT: "DRAFTED"}[status]


def rename_dataset(
    session: Session, dataset: Dataset, name: str, *, actor: str | None = None
) -> None:
    """Rename a dataset. The old name becomes an alias; the history is kept."""
    full_name = DatasetId(dataset.namespace, name).full_name
    if session.scalar(select(Dataset.dataset_id).where(Dataset.full_name == full_name)):
        raise DatasetExistsError(full_name)
    before = dataset.name
    # If the new name is an alias, delete it: a name must not lead to two datasets.
    session.execute(
        delete(DatasetAlias).where(
            DatasetAlias.namespace == dataset.namespace, DatasetAlias.name == name
        )
    )
    add_alias(session, dataset.dataset_id, dataset.namespace, before)
    dataset.name, dataset.full_name, dataset.updated_at = name, full_name, clock.now()
    record_dataset_event(
        session, dataset.dataset_id, "RENAMED", actor, {"from": before, "to": name}
    )
    index_datasets(session, [dataset.dataset_id])


def add_alias(session: Session, dataset_id: int, namespace: str, name: str) -> None:
    """Add another name for a dataset."""
    alias = session.get(DatasetAlias, (namespace, name))
    if alias is None:
        session.add(
            DatasetAlias(
                namespace=namespace, name=name, dataset_id=dataset_id, created_at=clock.now()
            )
        )
    else:
        alias.dataset_id = dataset_id


def get_dataset_id(session: Session, full_name: str) -> int:
    """Return the id of the dataset with this full name."""
    dataset_id = session.scalar(select(Dataset.dataset_id).where(Dataset.full_name == full_name))
    if dataset_id is None:
        raise DatasetNotFoundError(full_name)
    return dataset_id


def find_dataset(session: Session, name: str) -> Dataset:
    """Find a dataset by full name, unique short name, alias or id."""
    matches = session.scalars(
        select(Dataset).where((Dataset.full_name == name) | (Dataset.name == name))
    ).all()
    exact = [dataset for dataset in matches if dataset.full_name == name]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise AmbiguousDatasetError(name, [dataset.full_name for dataset in matches])
    return _find_alias(session, name) or _find_by_id(session, name)


def _find_alias(session: Session, name: str) -> Dataset | None:
    aliased = session.scalars(
        select(Dataset)
        .join(DatasetAlias, DatasetAlias.dataset_id == Dataset.dataset_id)
        .where(
            (DatasetAlias.name == name)
            | (DatasetAlias.namespace.concat("/").concat(DatasetAlias.name) == name)
        )
    ).all()
    if len({dataset.dataset_id for dataset in aliased}) > 1:
        raise AmbiguousDatasetError(name, [dataset.full_name for dataset in aliased])
    return aliased[0] if aliased else None


def _find_by_id(session: Session, name: str) -> Dataset:
    dataset_id = parse_row_id(name)
    dataset = None if dataset_id is None else session.get(Dataset, dataset_id)
    if dataset is None:
        raise DatasetNotFoundError(name, near=suggest_datasets(session, name, limit=1))
    return dataset


def list_tags(session: Session, dataset_id: int) -> list[str]:
    """Return the tags of a dataset, sorted."""
    return list(
        session.scalars(
            select(DatasetTag.tag).where(DatasetTag.dataset_id == dataset_id).order_by("tag")
        )
    )


def replace_tags(session: Session, dataset_id: int, tags: Iterable[str]) -> bool:
    """Replace the tags of a dataset; return whether they changed."""
    wanted, current = set(tags), set(list_tags(session, dataset_id))
    if wanted == current:
        return False
    session.execute(
        delete(DatasetTag).where(
            DatasetTag.dataset_id == dataset_id, DatasetTag.tag.in_(current - wanted)
        )
    )
    if added := sorted(wanted - current):
        session.execute(
            insert(DatasetTag), [{"dataset_id": dataset_id, "tag": tag} for tag in added]
        )
    index_datasets(session, [dataset_id])
    return True


def record_dataset_event(
    session: Session,
    dataset_id: int,
    event_type: str,
    actor: str | None,
    detail: Any = None,
    *,
    dataset_version_id: int | None = None,
) -> None:
    """Record an event of a dataset or a version."""
    session.add(
        DatasetEvent(
            dataset_id=dataset_id,
            dataset_version_id=dataset_version_id,
            event_type=event_type,
            actor=actor,
            occurred_at=clock.now(),
            detail_json=detail,
        )
    )


_OF, _EDGE, _PROCESS = Dataset.__table__.c, LineageEdge.__table__.c, Process.__table__.c
_DATASET_ID = bindparam("dataset_id", type_=_OF.dataset_id.type)


def get_dataset(session: Session, dataset_id: int) -> Dataset:
    """Return the dataset with this id."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None:
        raise DatasetNotFoundError(str(dataset_id))
    return dataset


@dataclass(frozen=True)
class Tally:
    """How many datasets have a value."""

    value: str
    datasets: int


def count_owners(session: Session, *, after: str = "", limit: int = 100) -> list[Tally]:
    """Return owner teams after `after`, with their number of datasets."""
    return _tally(session, Dataset.owner_team, after, limit)


def count_categories(session: Session, *, after: str = "", limit: int = 100) -> list[Tally]:
    """Return categories after `after`, with their number of datasets."""
    return _tally(session, Dataset.category, after, limit)


def _tally(session: Session, column: Any, after: str, limit: int) -> list[Tally]:
    rows: Any = session.execute(
        select(column, func.count())
        .where(column > after, Dataset.status != DEPRECATED)
        .group_by(column)
        .order_by(column)
        .limit(limit)
    )
    return [Tally(value, count) for value, count in rows]


def page_dataset_events(
    session: Session, dataset_id: int, *, before_id: int | None = None, limit: int = 100
) -> Sequence[DatasetEvent]:
    """Return the events of a dataset older than `before_id`, newest first."""
    query = select(DatasetEvent).where(DatasetEvent.dataset_id == dataset_id)
    if before_id is not None:
        query = query.where(DatasetEvent.dataset_event_id < before_id)
    return session.scalars(query.order_by(DatasetEvent.dataset_event_id.desc()).limit(limit)).all()


class ListFilter(TypedDict, total=False):
    """Filters for datasets; an omitted field is not checked."""

    category: str
    team: str
    format: str
    status: str


def page_datasets(
    session: Session,
    limit: int,
    *,
    after: tuple[str, int] | None = None,
    **wanted: Unpack[ListFilter],
) -> list[DatasetHit]:
    """Return datasets after `after`, sorted by name and id.

    The same datasets as a search without words.
    """
    values: dict[str, Any] = dict(wanted)
    if after is not None:
        values["after_name"], values["after_id"] = after
    query = _dataset_page(limit, tuple(wanted), started=after is not None)
    rows = query.fetch(session, **values)
    tags = list_tags_of(session, [row[0] for row in rows])
    return [DatasetHit(*(*row, tuple(tags[row[0]]))) for row in rows]


_FILTERS = {
    "category": _OF.category,
    "team": _OF.owner_team,
    "format": _OF.default_format,
    "status": _OF.status,
}


@lru_cache(maxsize=256)
def _dataset_page(
    limit: int, filters: tuple[str, ...], *, started: bool
) -> TypedQuery[tuple[Any, ...]]:
    query = select(
        _OF.dataset_id,
        _OF.name,
        _OF.full_name,
        _OF.description,
        _OF.category,
        _OF.default_format,
        _OF.owner_team,
        _OF.owner_email,
        _OF.status,
    ).where(*(_FILTERS[name] == bindparam(name, type_=String()) for name in filters))
    if started:
        name = bindparam("after_name", type_=String())
        same = and_(
            _OF.name == name,
            _OF.dataset_id > bindparam("after_id", type_=_OF.dataset_id.type),
        )
        # The first condition is redundant, but databases use the index only for that one.
        query = query.where(_OF.name >= name, or_(_OF.name > name, same))
    return TypedQuery(lambda *row: row, query.order_by(_OF.name, _OF.dataset_id).limit(limit))
