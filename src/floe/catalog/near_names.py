"""Suggest names that look like one that was not found, by the trigrams they share.

A small catalog is looked through. In a large one only indexes are asked, for a bounded number of
names: those next to the asked one in the alphabet, and those that hold all its words but one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from floe.catalog.stores import store_of
from floe.catalog.tables import Dataset
from floe.catalog.words import split_words

# A catalog with more datasets than this is not looked through.
MOST_SCANNED = 10_000
# How many words of the asked name are looked up, and how many names are taken for each question.
MOST_WORDS, NAMES_AT_ONCE = 6, 100
# So many pieces of the asked name are looked for in every name of the catalog.
PIECES = 12
# A name has to hold this part of them to be looked at closely, and so many are.
SHARED_PIECES = 0.3
CANDIDATES = 200
# From here on a name is near enough to be suggested.
LEAST_LIKENESS = 0.4


def suggest_datasets(session: Session, text: str, limit: int = 3) -> list[str]:
    """Return the names of datasets that look most like a text, the nearest first."""
    pieces = _pieces(text)
    if not pieces:
        return []
    newest = session.scalar(select(func.max(Dataset.dataset_id))) or 0
    if newest <= MOST_SCANNED:
        return rank_names(text, _candidates(session, pieces), limit)
    return rank_names(text, {*_neighbours(session, text), *_sharing(session, text)}, limit)


def rank_names(text: str, names: Iterable[str], limit: int = 3) -> list[str]:
    """Return the names that are near to a text, the nearest first."""
    asked = [_trigrams(word) for word in split_words(text)]
    scored = [(-_likeness(asked, name), len(name), name) for name in set(names)]
    near = sorted(one for one in scored if -one[0] >= LEAST_LIKENESS)
    return [name for *_, name in near[:limit]]


def _neighbours(session: Session, text: str) -> Iterator[str]:
    """Return the names before and after a text in the alphabet: they begin like it."""
    for asked in dict.fromkeys((text, text.partition("/")[2] or text)):
        after = select(Dataset.name).where(Dataset.name >= asked).order_by(Dataset.name)
        before = select(Dataset.name).where(Dataset.name < asked).order_by(Dataset.name.desc())
        for query in (after, before):
            yield from session.scalars(query.limit(NAMES_AT_ONCE))


def _sharing(session: Session, text: str) -> Iterator[str]:
    """Return names that hold all words of a text but one, and that one at least by its start."""
    words = split_words(text)[:MOST_WORDS]
    for place, word in enumerate(words):
        others = [*words[:place], *words[place + 1 :]]
        starts = dict.fromkeys(word[:length] for length in (len(word) - 1, len(word) // 2, 2))
        for start in (*filter(None, starts), None):
            asked = others if start is None else [*others, start]
            names = _matching(session, asked) if asked else ()
            yield from names
            if names:
                break


def _matching(session: Session, words: Sequence[str]) -> Sequence[str]:
    matches = store_of(session).matches(words)
    numbers = select(matches.c.dataset_id).limit(NAMES_AT_ONCE).subquery()
    query = select(Dataset.name).join(numbers, numbers.c.dataset_id == Dataset.dataset_id)
    return session.scalars(query).all()


def _candidates(session: Session, pieces: Sequence[str]) -> Sequence[str]:
    lowered = func.lower(Dataset.name)
    # Letters and digits only, so that nothing in a piece means anything to LIKE.
    held: Any = sum(case((lowered.like(f"%{piece}%"), 1), else_=0) for piece in pieces)
    counted = select(Dataset.name.label("name"), held.label("held")).subquery()
    least = max(1, round(SHARED_PIECES * len(pieces)))
    return session.scalars(
        select(counted.c.name)
        .where(counted.c.held >= least)
        .order_by(counted.c.held.desc(), func.length(counted.c.name), counted.c.name)
        .limit(CANDIDATES)
    ).all()


def _pieces(text: str) -> list[str]:
    found = dict.fromkeys(
        word[start : start + _size(word)]
        for word in split_words(text)
        for start in range(max(1, len(word) - _size(word) + 1))
    )
    pieces, chosen = list(found), min(PIECES, len(found))
    return [pieces[turn * len(pieces) // chosen] for turn in range(chosen)]


def _size(word: str) -> int:
    # One wrong letter leaves no trigram of a short word whole.
    return 3 if len(word) > 4 else 2


def _likeness(asked: Sequence[set[str]], name: str) -> float:
    """How well each asked word is met by some word of the name, from 0 to 1."""
    held = [_trigrams(word) for word in split_words(name)]
    if not asked or not held:
        return 0.0
    return sum(max(_overlap(one, other) for other in held) for one in asked) / len(asked)


def _overlap(one: set[str], other: set[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _trigrams(word: str) -> set[str]:
    # The beginning of a word says most about it, so it counts extra.
    padded = f"  {word} "
    return {padded[start : start + 3] for start in range(len(padded) - 2)}
