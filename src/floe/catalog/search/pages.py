"""Ask for datasets, a page at a time.

Every word has to be there, the last one at least in its beginning; hits in the name come first.
Without words, datasets are listed by name.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, Subquery, and_, exists, or_, select
from sqlalchemy.orm import Session, aliased

from floe.catalog.near_names import suggest_datasets
from floe.catalog.rows import LARGEST_NUMBER
from floe.catalog.search.documents import list_tags_of
from floe.catalog.search.facets import FACETS, FacetCount, count_facets
from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset, DatasetTag, Project
from floe.catalog.words import split_words
from floe.errors import FloeError

DEFAULT_LIMIT = 50
# More words narrow nothing down and only cost time.
MAX_QUERY_WORDS = 16


class CursorError(FloeError):
    """A cursor did not come from the page before."""

    def __init__(self, cursor: str) -> None:
        super().__init__(
            f"'{cursor}' is no cursor of this search. Take next_cursor from the page before, "
            "or leave it out to start from the beginning."
        )


@dataclass(frozen=True)
class SearchFilters:
    """What hits have to be, besides holding the words."""

    category: str | None = None
    team: str | None = None
    format: str | None = None
    status: str | None = None
    tag: str | None = None
    project: str | None = None


@dataclass(frozen=True)
class DatasetHit:
    """A dataset that was found, with what a list shows of it."""

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
    """One page of hits. Facets and total are counted over all hits, on the first page only."""

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
    """Find datasets by words, the best first; without words list them by name."""
    words = split_words(text)[:MAX_QUERY_WORDS]
    if text.strip() and not words:
        return SearchPage([])
    question = _Question(
        store_of(session).matches(words) if words else None,
        _conditions(filters or SearchFilters()),
    )
    page_of = _ranked_page if words else _listed_page
    hits, next_cursor = page_of(session, question, limit, cursor)
    if cursor is not None:
        return SearchPage(hits, next_cursor)
    total, facets = count_facets(session, *question) if with_facets else (None, {})
    suggestions = suggest_datasets(session, text) if words and not hits else []
    return SearchPage(_exact_first(hits, text), next_cursor, total, facets, suggestions)


class _Question(NamedTuple):
    """What is asked of the database: the words, if there are any, and the filters."""

    matches: Subquery | None
    conditions: Sequence[ColumnElement[bool]]


def _conditions(filters: SearchFilters) -> list[ColumnElement[bool]]:
    found = [
        column == wanted
        for name, column in FACETS.items()
        if (wanted := getattr(filters, name)) is not None
    ]
    if filters.tag is not None:
        held = aliased(DatasetTag)
        tagged = held.dataset_id == Dataset.dataset_id
        found.append(exists().where(tagged, held.tag == filters.tag))
    if filters.project is not None:
        owner = Project.project_id == Dataset.project_id
        found.append(exists().where(owner, Project.name == filters.project))
    return found


# Plain columns: SQLAlchemy is quicker with them than with the attributes of a model.
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
    session: Session, question: _Question, limit: int, cursor: str | None
) -> tuple[list[DatasetHit], str | None]:
    query = select(*_SHOWN).where(*question.conditions)
    if cursor is not None:
        name, number = _read_cursor(cursor, str, int)
        same_name = and_(_OF.name == name, _OF.dataset_id > number)
        query = query.where(or_(_OF.name > name, same_name))
    hits = _fetch(session, query.order_by(_OF.name, _OF.dataset_id).limit(limit + 1))
    if len(hits) <= limit:
        return hits, None
    last = hits[limit - 1]
    return hits[:limit], _write_cursor(last.name, last.dataset_id)


def _ranked_page(
    session: Session, question: _Question, limit: int, cursor: str | None
) -> tuple[list[DatasetHit], str | None]:
    (offset,) = _read_cursor(cursor, int) if cursor is not None else (0,)
    best = _best(question, limit + 1, offset)
    hits = _fetch(
        session,
        select(*_SHOWN)
        .join(best, best.c.dataset_id == _OF.dataset_id)
        .order_by(best.c.rank, best.c.dataset_id),
    )
    return hits[:limit], _write_cursor(offset + limit) if hits[limit:] else None


def _best(question: _Question, limit: int, offset: int) -> Subquery:
    """Rank before anything is joined, so that only one page of datasets is looked up."""
    matches, conditions = question
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
    asked = text.strip().casefold()
    return sorted(hits, key=lambda hit: hit.name.casefold() != asked)


def _write_cursor(*place: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _read_cursor(cursor: str, *kinds: type) -> list[Any]:
    try:
        place = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (binascii.Error, ValueError):
        raise CursorError(cursor) from None
    if not isinstance(place, list) or [type(part) for part in place] != list(kinds):
        raise CursorError(cursor)
    if not all(isinstance(part, str) or 0 <= part <= LARGEST_NUMBER for part in place):
        raise CursorError(cursor)
    return place
