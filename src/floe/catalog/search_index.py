"""The search index: words that find a dataset, and suggestions of similar names.

Text is split into words in the same way for indexing and for searching, on every store. To
suggest names, a small catalog is scanned; in a large one, indexes find a limited number of names.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Select, case, column, exists, func, select, table, union
from sqlalchemy.orm import Session

from floe.catalog.stores import SearchDocument, Store, store_of
from floe.catalog.tables import Dataset, DatasetAlias, DatasetSchema, DatasetTag, SchemaSighting

# Longer than any real name; longer words are cut off to keep the index small.
MAX_WORD_LENGTH = 100

_CHUNK = re.compile(r"[^\W_]+")

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def split_words(text: str) -> list[str]:
    """Split text into words, also at camelCase; remove case and accents.

    Every character that is not a letter or digit separates words.
    """
    return [_fold(part) for chunk in _chunks(text) for part in _CAMEL.split(chunk)]


def index_words(text: str) -> list[str]:
    """Split text into words; add camelCase words unsplit too, as people type both."""
    words: list[str] = []
    for chunk in _chunks(text):
        # Check for lower case first: it is cheap, and true for most chunks.
        if not chunk.islower() and _CAMEL.search(chunk):
            words += [_fold(part) for part in _CAMEL.split(chunk)]
        words.append(_fold(chunk))
    return words


def _chunks(text: str) -> list[str]:
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        text = "".join(letter for letter in decomposed if not unicodedata.combining(letter))
    return _CHUNK.findall(text)


def _fold(word: str) -> str:
    return word.casefold()[:MAX_WORD_LENGTH]


# A longer text is not a description but a data dump; stores have their own limits too.
MAX_FIELD_WORDS = 5_000

DOCUMENTS_AT_ONCE = 1_000


def index_datasets(session: Session, dataset_ids: Iterable[int]) -> None:
    """Update the search index for datasets. Call it whenever their words change."""
    ids = sorted(set(dataset_ids))
    session.flush()
    for start in range(0, len(ids), DOCUMENTS_AT_ONCE):
        documents = _documents(session, ids[start : start + DOCUMENTS_AT_ONCE])
        store_of(session).index_documents(session, documents)


def list_unindexed(session: Session) -> list[int]:
    """Return the ids of datasets that are not in the search index yet."""
    indexed = table("dataset_search", column(store_of(session).search_key))
    key = indexed.c[store_of(session).search_key]
    is_indexed = exists().where(key == Dataset.dataset_id)
    return list(session.scalars(select(Dataset.dataset_id).where(~is_indexed)))


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
    """Return the columns of datasets, from their declared and all observed schemas."""
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
    grouped: dict[Any, list[str]] = defaultdict(list)
    rows: Any = session.execute(query, values)
    for key, text in rows:
        grouped[key].append(text)
    return grouped


# A catalog with more datasets than this is not scanned.
MAX_SCANNED = 10_000

# How many words of the text are looked up, and how many names each query returns.
MAX_WORDS, NAMES_PER_QUERY = 6, 100

# How many pieces of the text are searched in every name of the catalog.
MAX_PIECES = 12

# A name must contain this share of the pieces to be a candidate; at most so many are compared.
MIN_SHARED_PIECES = 0.3

MAX_CANDIDATES = 200

# The lowest similarity of a suggested name.
MIN_SIMILARITY = 0.4


def suggest_datasets(session: Session, text: str, limit: int = 3) -> list[str]:
    """Return the names of the datasets most similar to a text, best match first."""
    pieces = _pieces(text)
    if not pieces:
        return []
    newest = session.scalar(select(func.max(Dataset.dataset_id))) or 0
    if newest <= MAX_SCANNED:
        return rank_names(text, _candidates(session, pieces), limit)
    return rank_names(
        text,
        {*_alphabetical_neighbours(session, text), *_names_with_words_of(session, text)},
        limit,
    )


def rank_names(text: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names similar to a text, best match first."""
    words = [_trigrams(word) for word in split_words(text)]
    scored = [(-_similarity(words, name), len(name), name) for name in set(names)]
    near = sorted(entry for entry in scored if -entry[0] >= MIN_SIMILARITY)
    return [name for *_, name in near[:limit]]


def _alphabetical_neighbours(session: Session, text: str) -> Iterator[str]:
    """Return the names before and after a text in the alphabet: they start like it."""
    for name in dict.fromkeys((text, text.partition("/")[2] or text)):
        after = select(Dataset.name).where(Dataset.name >= name).order_by(Dataset.name)
        before = select(Dataset.name).where(Dataset.name < name).order_by(Dataset.name.desc())
        for query in (after, before):
            yield from session.scalars(query.limit(NAMES_PER_QUERY))


def _names_with_words_of(session: Session, text: str) -> Iterator[str]:
    """Return names that contain all words of a text, one of them only as a prefix.

    If no prefix matches, that word is ignored.
    """
    words = split_words(text)[:MAX_WORDS]
    for index, word in enumerate(words):
        others = [*words[:index], *words[index + 1 :]]
        starts = dict.fromkeys(word[:length] for length in (len(word) - 1, len(word) // 2, 2))
        for start in (*filter(None, starts), None):
            wanted = others if start is None else [*others, start]
            names = _matching(session, wanted) if wanted else ()
            yield from names
            if names:
                break


def _matching(session: Session, words: Sequence[str]) -> Sequence[str]:
    matches = store_of(session).matches(words)
    ids = select(matches.c.dataset_id).limit(NAMES_PER_QUERY).subquery()
    query = select(Dataset.name).join(ids, ids.c.dataset_id == Dataset.dataset_id)
    return session.scalars(query).all()


def _candidates(session: Session, pieces: Sequence[str]) -> Sequence[str]:
    lowered = func.lower(Dataset.name)
    # Pieces have only letters and digits, so LIKE needs no escaping.
    matched: Any = sum(case((lowered.like(f"%{piece}%"), 1), else_=0) for piece in pieces)
    counted = select(Dataset.name.label("name"), matched.label("matched")).subquery()
    least = max(1, round(MIN_SHARED_PIECES * len(pieces)))
    return session.scalars(
        select(counted.c.name)
        .where(counted.c.matched >= least)
        .order_by(counted.c.matched.desc(), func.length(counted.c.name), counted.c.name)
        .limit(MAX_CANDIDATES)
    ).all()


def _pieces(text: str) -> list[str]:
    distinct = dict.fromkeys(
        word[start : start + _size(word)]
        for word in split_words(text)
        for start in range(max(1, len(word) - _size(word) + 1))
    )
    pieces, count = list(distinct), min(MAX_PIECES, len(distinct))
    return [pieces[index * len(pieces) // count] for index in range(count)]


def _size(word: str) -> int:
    # In a short word, one wrong letter would break every trigram.
    return 3 if len(word) > 4 else 2


def _similarity(words: Sequence[set[str]], name: str) -> float:
    """Return how well the best matching words of a name fit each word, from 0 to 1."""
    name_words = [_trigrams(word) for word in split_words(name)]
    if not words or not name_words:
        return 0.0
    return sum(max(_overlap(word, other) for other in name_words) for word in words) / len(words)


def _overlap(first: set[str], second: set[str]) -> float:
    return 2 * len(first & second) / (len(first) + len(second))


def _trigrams(word: str) -> set[str]:
    # Pad the start of a word, because it identifies the word best.
    padded = f"  {word} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}
