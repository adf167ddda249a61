"""What the full-text index holds of a dataset: the words of all that people know it by."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, column, exists, select, table, union
from sqlalchemy.orm import Session

from floe.catalog.stores import SearchDocument, Store, store_of
from floe.catalog.tables import (
    Dataset,
    DatasetAlias,
    DatasetSchema,
    DatasetTag,
    SchemaSighting,
)
from floe.catalog.words import index_words

# A document beyond this is a data dump, not a description; stores have limits of their own.
MAX_FIELD_WORDS = 5_000
DOCUMENTS_AT_ONCE = 1_000


def index_datasets(session: Session, dataset_ids: Iterable[int]) -> None:
    """Make datasets findable as they are now. Call it whenever one of their words has changed."""
    ids = sorted(set(dataset_ids))
    session.flush()
    for start in range(0, len(ids), DOCUMENTS_AT_ONCE):
        documents = _documents(session, ids[start : start + DOCUMENTS_AT_ONCE])
        store_of(session).index_documents(session, documents)


def reindex_datasets(session: Session) -> int:
    """Make every dataset findable anew; return how many there are."""
    ids = session.scalars(select(Dataset.dataset_id)).all()
    index_datasets(session, ids)
    return len(ids)


def list_unindexed(session: Session) -> list[int]:
    """Return the datasets that cannot be found by any word yet."""
    indexed = table("dataset_search", column(store_of(session).search_key))
    key = indexed.c[store_of(session).search_key]
    there = exists().where(key == Dataset.dataset_id)
    return list(session.scalars(select(Dataset.dataset_id).where(~there)))


def list_tags_of(session: Session, ids: Sequence[int]) -> dict[int, list[str]]:
    """Return the tags of several datasets, sorted."""
    return _grouped(session, _tags(store_of(session)), ids=ids)


@lru_cache(maxsize=16)
def _tags(store: Store) -> Select[*tuple[Any, ...]]:
    of = DatasetTag.__table__.c
    listed = store.among(of.dataset_id, "ids")
    return select(of.dataset_id, of.tag).where(listed).order_by(of.dataset_id, of.tag)


def _documents(session: Session, ids: Sequence[int]) -> list[SearchDocument]:
    datasets = session.execute(_described(session, ids)).all()
    tags, aliases = list_tags_of(session, ids), _aliases(session, ids)
    columns = _columns(session, ids)
    return [
        SearchDocument(
            dataset_id=row.dataset_id,
            name=_field(row.name),
            tags=_field(row.category, *tags[row.dataset_id], *aliases[row.dataset_id]),
            owner=_field(row.owner_team, row.owner_email),
            columns=_field(*sorted(columns[row.dataset_id])),
            description=_field(row.description, row.default_format, row.namespace),
        )
        for row in datasets
    ]


def _described(session: Session, ids: Sequence[int]) -> Select[*tuple[Any, ...]]:
    of = Dataset.__table__.c
    return select(
        of.dataset_id,
        of.namespace,
        of.name,
        of.description,
        of.category,
        of.default_format,
        of.owner_team,
        of.owner_email,
    ).where(store_of(session).among(of.dataset_id, ids))


def _field(*texts: str | None) -> str:
    words = index_words(" ".join(text for text in texts if text))
    return " ".join(words[:MAX_FIELD_WORDS])


def _aliases(session: Session, ids: Sequence[int]) -> dict[int, list[str]]:
    of = DatasetAlias.__table__.c
    among = store_of(session).among(of.dataset_id, ids)
    return _grouped(session, select(of.dataset_id, of.name).where(among).order_by(of.name))


def _columns(session: Session, ids: Sequence[int]) -> dict[int, list[str]]:
    """The columns of a dataset in its declared schema and in every one it was seen with."""
    of, seen, among = Dataset.__table__.c, SchemaSighting.__table__.c, store_of(session).among
    schemas = union(
        select(of.dataset_id, of.schema_hash).where(among(of.dataset_id, ids)),
        select(seen.dataset_id, seen.schema_hash).where(among(seen.dataset_id, ids)),
    ).subquery()
    column_of = DatasetSchema.__table__.c
    return _grouped(
        session,
        select(schemas.c.dataset_id, column_of.column_name)
        .join(DatasetSchema, column_of.schema_hash == schemas.c.schema_hash)
        .distinct(),
    )


def _grouped(
    session: Session, query: Select[*tuple[Any, ...]], **values: Any
) -> dict[Any, list[str]]:
    found: dict[Any, list[str]] = defaultdict(list)
    rows: Any = session.execute(query, values)
    for key, text in rows:
        found[key].append(text)
    return found
