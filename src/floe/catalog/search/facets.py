"""Facets: what the hits of a search have in common, counted over all of them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Subquery, func, select
from sqlalchemy.orm import Session

from floe.catalog.tables import Dataset, DatasetTag

MAX_TAGS_COUNTED = 50

# What users narrow a search down by, and the column behind it.
_DATASET, _TAG = Dataset.__table__.c, DatasetTag.__table__.c
FACETS = {
    "category": _DATASET.category,
    "team": _DATASET.owner_team,
    "format": _DATASET.default_format,
    "status": _DATASET.status,
}


@dataclass(frozen=True)
class FacetCount:
    """How many of all hits have a value."""

    value: str
    count: int


def count_facets(
    session: Session, matches: Subquery | None, conditions: Sequence[ColumnElement[bool]]
) -> tuple[int, dict[str, list[FacetCount]]]:
    """Return the number of hits, and of those with each value: the most frequent first."""
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
    # All facets in one pass: there are few combinations of their values, however many hits.
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
