"""Search datasets, a page at a time.

Every word must match, the last one as a prefix; hits in the name come first. Without words,
datasets are listed by name.
"""

import base64
import binascii
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, and_, exists, func, or_, select
from sqlalchemy.orm import Session, aliased

from floe.catalog.queries import MAX_ROW_ID
from floe.catalog.search_index import list_tags_of, split_words, suggest_datasets
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, DatasetTag, Project
from floe.errors import FloeError

MAX_TAGS_COUNTED = 50

_DATASET, _TAG = Dataset.__table__.c, DatasetTag.__table__.c

# The facets by which users filter a search, and their columns.
FACETS = {
    "category": _DATASET.category,
    "team": _DATASET.owner_team,
    "format": _DATASET.default_format,
    "status": _DATASET.status,
}


@dataclass(frozen=True)
class FacetCount:
    """How many hits have a value."""

    value: str
    count: int


def count_facets(
    session: Session, matches: Subquery | None, conditions: Sequence[ColumnElement[bool]]
) -> tuple[int, dict[str, list[FacetCount]]]:
    """Return the number of hits, and the counts per facet value, most frequent first."""
    total, counts = 0, {name: Counter[str]() for name in FACETS}
    for *values, count in _combinations(session, matches, conditions):
        total += count
        for name, value in zip(FACETS, values, strict=True):
            if value is not None:
                counts[name][value] += count
    facets = {name: _by_count(counted) for name, counted in counts.items()}
    return total, {**facets, "tag": _count_tags(session, matches, conditions)}


def _combinations(
    session: Session, matches: Subquery | None, conditions: Sequence[ColumnElement[bool]]
) -> Any:
    # Count all facets in one pass: even many hits have few combinations of values.
    query = select(*FACETS.values(), func.count()).where(*conditions)
    if matches is not None:
        query = query.join(matches, matches.c.dataset_id == _DATASET.dataset_id)
    return session.execute(query.group_by(*FACETS.values()))


def _count_tags(
    session: Session, matches: Subquery | None, conditions: Sequence[ColumnElement[bool]]
) -> list[FacetCount]:
    query = select(_TAG.tag, func.count())
    if conditions:
        same = _DATASET.dataset_id == _TAG.dataset_id
        query = query.join(Dataset.__table__, same).where(*conditions)
    if matches is not None:
        query = query.join(matches, matches.c.dataset_id == _TAG.dataset_id)
    most = query.group_by(_TAG.tag).order_by(func.count().desc(), _TAG.tag)
    rows: Any = session.execute(most.limit(MAX_TAGS_COUNTED))
    return [FacetCount(tag, count) for tag, count in rows]


def _by_count(counted: Counter[str]) -> list[FacetCount]:
    ordered = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
    return [FacetCount(value, count) for value, count in ordered]


DEFAULT_LIMIT = 50

# Further words are ignored: they hardly reduce the hits and cost time.
MAX_QUERY_WORDS = 16


class CursorError(FloeError):
    """The cursor is not one that a search returned."""

    def __init__(self, cursor: str) -> None:
        super().__init__(
            f"Invalid cursor '{cursor}'. Use next_cursor of the previous page, "
            "or omit the cursor to start from the beginning."
        )


@dataclass(frozen=True)
class SearchFilters:
    """Filters that hits must match, in addition to the words."""

    category: str | None = None
    team: str | None = None
    format: str | None = None
    status: str | None = None
    tag: str | None = None
    project: str | None = None


@dataclass(frozen=True)
class DatasetHit:
    """A dataset as a search result."""

    dataset_id: int
    name: str
    full_name: str
    description: str | None
    category: str | None
    format: str | None
    team: str | None
    email: str | None
    status: str
    tags: tuple[str, ...]


@dataclass(frozen=True)
class SearchPage:
    """One page of hits. Only the first page has facets and the total, over all hits."""

    hits: Sequence[DatasetHit]
    next_cursor: str | None = None
    total: int | None = None
    facets: Mapping[str, Sequence[FacetCount]] = field(default_factory=dict)
    suggestions: Sequence[str] = ()


def search_datasets(
    session: Session,
    text: str = "",
    *,
    filters: SearchFilters | None = None,
    limit: int = DEFAULT_LIMIT,
    cursor: str | None = None,
    with_facets: bool = True,
) -> SearchPage:
    """Find datasets by words, best match first; without words, list them by name."""
    words = split_words(text)[:MAX_QUERY_WORDS]
    if text.strip() and not words:
        return SearchPage([])
    search = _SearchQuery(
        store_of(session).matches(words) if words else None,
        _conditions(filters or SearchFilters()),
    )
    page_of = _ranked_page if words else _listed_page
    hits, next_cursor = page_of(session, search, limit, cursor)
    if cursor is not None:
        return SearchPage(hits, next_cursor)
    total, facets = count_facets(session, *search) if with_facets else (None, {})
    suggestions = suggest_datasets(session, text) if words and not hits else []
    return SearchPage(_exact_first(hits, text), next_cursor, total, facets, suggestions)


class _SearchQuery(NamedTuple):
    """The matches of the words, if any, and the conditions of the filters."""

    matches: Subquery | None
    conditions: Sequence[ColumnElement[bool]]


def _conditions(filters: SearchFilters) -> list[ColumnElement[bool]]:
    conditions = [
        column == wanted
        for name, column in FACETS.items()
        if (wanted := getattr(filters, name)) is not None
    ]
    if filters.tag is not None:
        tag = aliased(DatasetTag)
        tagged = tag.dataset_id == Dataset.dataset_id
        conditions.append(exists().where(tagged, tag.tag == filters.tag))
    if filters.project is not None:
        owner = Project.project_id == Dataset.project_id
        conditions.append(exists().where(owner, Project.name == filters.project))
    return conditions


# Plain columns, because they are faster in SQLAlchemy than a model's attributes.
_OF = Dataset.__table__.c

_SHOWN = (
    _OF.dataset_id,
    _OF.name,
    _OF.full_name,
    _OF.description,
    _OF.category,
    _OF.default_format,
    _OF.owner_team,
    _OF.owner_email,
    _OF.status,
)


def _listed_page(
    session: Session, search: _SearchQuery, limit: int, cursor: str | None
) -> tuple[list[DatasetHit], str | None]:
    query = select(*_SHOWN).where(*search.conditions)
    if cursor is not None:
        name, dataset_id = _read_cursor(cursor, str, int)
        same_name = and_(_OF.name == name, _OF.dataset_id > dataset_id)
        query = query.where(or_(_OF.name > name, same_name))
    hits = _fetch(session, query.order_by(_OF.name, _OF.dataset_id).limit(limit + 1))
    if len(hits) <= limit:
        return hits, None
    last = hits[limit - 1]
    return hits[:limit], _write_cursor(last.name, last.dataset_id)


def _ranked_page(
    session: Session, search: _SearchQuery, limit: int, cursor: str | None
) -> tuple[list[DatasetHit], str | None]:
    (offset,) = _read_cursor(cursor, int) if cursor is not None else (0,)
    best = _best(search, limit + 1, offset)
    hits = _fetch(
        session,
        select(*_SHOWN)
        .join(best, best.c.dataset_id == _OF.dataset_id)
        .order_by(best.c.rank, best.c.dataset_id),
    )
    return hits[:limit], _write_cursor(offset + limit) if hits[limit:] else None


def _best(search: _SearchQuery, limit: int, offset: int) -> Subquery:
    """Rank before joining, so that only one page of datasets is looked up."""
    matches, conditions = search
    assert matches is not None
    ranked = select(matches.c.dataset_id, matches.c.rank)
    if conditions:
        ranked = ranked.join(Dataset.__table__, _OF.dataset_id == matches.c.dataset_id)
    in_order = ranked.where(*conditions).order_by(matches.c.rank, matches.c.dataset_id)
    return in_order.limit(limit).offset(offset).subquery("best")


def _fetch(session: Session, query: Select[*tuple[Any, ...]]) -> list[DatasetHit]:
    rows: Sequence[Any] = session.execute(query).all()
    tags = list_tags_of(session, [row.dataset_id for row in rows])
    return [DatasetHit(*(*row, tuple(tags[row.dataset_id]))) for row in rows]


def _exact_first(hits: Sequence[DatasetHit], text: str) -> Sequence[DatasetHit]:
    name = text.strip().casefold()
    return sorted(hits, key=lambda hit: hit.name.casefold() != name)


def _write_cursor(*position: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(position).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, *kinds: type) -> list[Any]:
    try:
        position = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        raise CursorError(cursor) from None
    if not isinstance(position, list) or [type(part) for part in position] != list(kinds):
        raise CursorError(cursor)
    if not all(isinstance(part, str) or 0 <= part <= MAX_ROW_ID for part in position):
        raise CursorError(cursor)
    return position
