"""Datasets: register, change, rename, deprecate and find them; each step leaves an event."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypedDict, Unpack

from sqlalchemy import String, and_, bindparam, delete, func, insert, or_, select, union_all
from sqlalchemy.orm import Session

from floe import clock
from floe.catalog.errors import AmbiguousDatasetError, DatasetExistsError, DatasetNotFoundError
from floe.catalog.near_names import suggest_datasets
from floe.catalog.questions import Question
from floe.catalog.rows import Difference, change_fields, number_of
from floe.catalog.search.documents import index_datasets, list_tags_of
from floe.catalog.search.pages import DatasetHit
from floe.catalog.tables import (
    Dataset,
    DatasetAlias,
    DatasetEvent,
    DatasetTag,
    LineageEdge,
    Process,
    SchemaSighting,
)
from floe.spec.identity import DatasetId

DRAFT, ACTIVE, DEPRECATED = "DRAFT", "ACTIVE", "DEPRECATED"


class DatasetFields(TypedDict, total=False):
    """What can be said of a dataset besides its name."""

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
    """Register a dataset under a new name."""
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
    """Build a dataset's row without writing it."""
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
    """Change what differs; return that, with the values before."""
    change = change_fields(dataset, values)
    if change:
        detail = {"changed": sorted(change.after)}
        record_dataset_event(session, dataset.dataset_id, "UPDATED", actor, detail)
        index_datasets(session, [dataset.dataset_id])
    return change


def set_status(
    session: Session, dataset: Dataset, status: str, *, actor: str | None = None
) -> bool:
    """Activate or deprecate a dataset; say whether that changed anything."""
    if dataset.status == status:
        return False
    before, dataset.status, dataset.updated_at = dataset.status, status, clock.now()
    detail = {"from": before, "to": status}
    record_dataset_event(session, dataset.dataset_id, status_event(status), actor, detail)
    return True


def status_event(status: str) -> str:
    """Name the event that a new status is."""
    return {ACTIVE: "ACTIVATED", DEPRECATED: "DEPRECATED", DRAFT: "DRAFTED"}[status]


def rename_dataset(
    session: Session, dataset: Dataset, name: str, *, actor: str | None = None
) -> None:
    """Give a dataset another name; the old one stays as an alias, and history stays with it."""
    full_name = DatasetId(dataset.namespace, name).full_name
    if session.scalar(select(Dataset.dataset_id).where(Dataset.full_name == full_name)):
        raise DatasetExistsError(full_name)
    before = dataset.name
    # A name that comes back from an alias must not stand for both.
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
    """Let clients call a dataset by another name too."""
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
    """Return the number of a dataset by its full name."""
    number = session.scalar(select(Dataset.dataset_id).where(Dataset.full_name == full_name))
    if number is None:
        raise DatasetNotFoundError(full_name)
    return number


def find_dataset(session: Session, name: str) -> Dataset:
    """Find a dataset by its full name, its name where that is unique, an alias, or its number."""
    matches = session.scalars(
        select(Dataset).where((Dataset.full_name == name) | (Dataset.name == name))
    ).all()
    exact = [dataset for dataset in matches if dataset.full_name == name]
    if len(exact or matches) == 1:
        return (exact or matches)[0]
    if matches:
        raise AmbiguousDatasetError(name, [dataset.full_name for dataset in matches])
    return _find_alias(session, name) or _find_number(session, name)


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


def _find_number(session: Session, name: str) -> Dataset:
    number = number_of(name)
    dataset = None if number is None else session.get(Dataset, number)
    if dataset is None:
        raise DatasetNotFoundError(name, near=suggest_datasets(session, name, limit=1))
    return dataset


def list_datasets(
    session: Session, *, after: str = "", limit: int = 100, statuses: Iterable[str] = ()
) -> Sequence[Dataset]:
    """Return datasets by full name, from after one on."""
    query = select(Dataset).where(Dataset.full_name > after)
    if wanted := list(statuses):
        query = query.where(Dataset.status.in_(wanted))
    return session.scalars(query.order_by(Dataset.full_name).limit(limit)).all()


def list_tags(session: Session, dataset_id: int) -> list[str]:
    """Return the tags of a dataset, sorted."""
    return list(
        session.scalars(
            select(DatasetTag.tag).where(DatasetTag.dataset_id == dataset_id).order_by("tag")
        )
    )


def replace_tags(session: Session, dataset_id: int, tags: Iterable[str]) -> bool:
    """Give a dataset exactly these tags; say whether that changed anything."""
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
    """Write a moment of a dataset's or a version's life."""
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


def list_dataset_events(session: Session, dataset_id: int, limit: int = 100) -> list[DatasetEvent]:
    """Return a dataset's newest events, the newest first."""
    return list(
        session.scalars(
            select(DatasetEvent)
            .where(DatasetEvent.dataset_id == dataset_id)
            .order_by(DatasetEvent.occurred_at.desc(), DatasetEvent.dataset_event_id.desc())
            .limit(limit)
        )
    )


class DatasetView(NamedTuple):
    """A dataset with all that its own row says, and the hash of its newest schema."""

    dataset_id: int
    namespace: str
    name: str
    full_name: str
    description: str | None
    category: str | None
    default_format: str | None
    owner_team: str | None
    owner_email: str | None
    status: str
    timezone: str | None
    needs_validation: bool
    curated: bool
    schema_hash: str | None
    declaration_json: Any
    created_by: str | None
    created_at: datetime
    updated_at: datetime | None
    default_sla_id: int | None


class ProcessRef(NamedTuple):
    """A process next to a dataset."""

    process_id: int
    process_key: str
    name: str | None
    team: str | None


class Neighbours(NamedTuple):
    """Who writes a dataset, and who reads it."""

    producers: list[ProcessRef]
    consumers: list[ProcessRef]


_OF, _EDGE, _PROCESS = Dataset.__table__.c, LineageEdge.__table__.c, Process.__table__.c
_NUMBER = bindparam("dataset_id", type_=_OF.dataset_id.type)


def get_dataset(session: Session, dataset_id: int) -> Dataset:
    """Return the dataset with this number."""
    dataset = session.get(Dataset, dataset_id)
    if dataset is None:
        raise DatasetNotFoundError(str(dataset_id))
    return dataset


def describe_dataset(session: Session, dataset_id: int) -> DatasetView:
    """Return what the row of a dataset says. Its schema is the declared one, else the newest."""
    dataset = _VIEW.ask_one(session, dataset_id=dataset_id)
    if dataset is None:
        raise DatasetNotFoundError(str(dataset_id))
    return dataset


def describe_tags(session: Session, dataset_id: int) -> list[str]:
    """Return the tags of a dataset, sorted."""
    return [tag for (tag,) in _TAGS.ask(session, dataset_id=dataset_id)]


def describe_neighbours(session: Session, dataset_id: int) -> Neighbours:
    """Return who writes and who reads a dataset directly, by key."""
    found: dict[str, set[ProcessRef]] = {"PRODUCES": set(), "CONSUMES": set()}
    for role, *process in _NEIGHBOURS.ask(session, dataset_id=dataset_id):
        found[role].add(ProcessRef(*process))
    producers, consumers = (
        sorted(found[role], key=lambda one: one.process_key) for role in ("PRODUCES", "CONSUMES")
    )
    return Neighbours(producers, consumers)


_NEWEST_SCHEMA = (
    select(SchemaSighting.schema_hash)
    .where(SchemaSighting.dataset_id == _OF.dataset_id)
    .order_by(SchemaSighting.last_seen.desc(), SchemaSighting.schema_hash)
    .limit(1)
    .scalar_subquery()
)
_VIEW = Question(
    DatasetView,
    select(
        *(
            func.coalesce(_OF.schema_hash, _NEWEST_SCHEMA).label(name)
            if name == "schema_hash"
            else _OF[name]
            for name in DatasetView._fields
        )
    ).where(_OF.dataset_id == _NUMBER),
)
_TAGS: Question[tuple[str]] = Question(
    lambda tag: (tag,),
    select(DatasetTag.tag).where(DatasetTag.dataset_id == _NUMBER).order_by(DatasetTag.tag),
)
_NEIGHBOURS: Question[tuple[Any, ...]] = Question(
    lambda *row: row,
    union_all(
        *(
            select(
                _EDGE.edge_role,
                _PROCESS.process_id,
                _PROCESS.process_key,
                _PROCESS.name,
                _PROCESS.team,
            )
            .join(Process.__table__, _PROCESS.process_id == _EDGE[f"{far}_id"])
            .where(
                _EDGE[f"{near}_type"] == "DATASET",
                _EDGE[f"{near}_id"] == _NUMBER,
                _EDGE.edge_role == role,
                _EDGE.ended_at.is_(None),
            )
            for near, far, role in (
                ("target", "source", "PRODUCES"),
                ("source", "target", "CONSUMES"),
            )
        )
    ),
)


@dataclass(frozen=True)
class Tally:
    """How many datasets have a value in common."""

    value: str
    datasets: int


def count_owners(session: Session, *, after: str = "", limit: int = 100) -> list[Tally]:
    """Return the teams that own datasets, from after one on, and how many each has."""
    return _tally(session, Dataset.owner_team, after, limit)


def count_categories(session: Session, *, after: str = "", limit: int = 100) -> list[Tally]:
    """Return the categories of datasets, from after one on, and how many are in each."""
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
    """Return what happened to a dataset, the newest first, from before one event on."""
    query = select(DatasetEvent).where(DatasetEvent.dataset_id == dataset_id)
    if before_id is not None:
        query = query.where(DatasetEvent.dataset_event_id < before_id)
    return session.scalars(query.order_by(DatasetEvent.dataset_event_id.desc()).limit(limit)).all()


class ListFilter(TypedDict, total=False):
    """Which datasets are wanted; what is not said does not matter."""

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
    """Return datasets by name, from after one on: what a search without words would find."""
    values: dict[str, Any] = dict(wanted)
    if after is not None:
        values["after_name"], values["after_id"] = after
    question = _dataset_page(limit, tuple(wanted), started=after is not None)
    rows = question.ask(session, **values)
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
) -> Question[tuple[Any, ...]]:
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
        # Said twice, because a database goes to a place in the index only by the first.
        query = query.where(_OF.name >= name, or_(_OF.name > name, same))
    return Question(lambda *row: row, query.order_by(_OF.name, _OF.dataset_id).limit(limit))
