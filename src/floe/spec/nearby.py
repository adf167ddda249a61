"""Suggest known names that are similar to a misspelled one."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN_AT_MOST = 8


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is closest in spelling, if any is close.

    Swapped letters are the most likely mistake, so such a name is preferred.
    """
    candidates = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), candidates, n=5)
    swapped = (candidate for candidate in close if sorted(candidate) == sorted(name.lower()))
    match = next(swapped, close[0] if close else None)
    return candidates[match] if match is not None else None


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Return a hint with the closest name, else `otherwise`, else the list of choices."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean '{near}'?"
    if otherwise or not names:
        return otherwise
    return choices(names)


def choices(names: list[str]) -> str:
    """Return a hint that lists the valid values, shortened if there are many."""
    shown = ", ".join(names[:SHOWN_AT_MOST])
    return f"Choose one of: {shown}{', …' if len(names) > SHOWN_AT_MOST else '.'}"


class Suggestions:
    """Suggestions for one run of checks, limited to a number of names.

    Comparing spellings takes time for each pair of names. A project with a missing include
    has thousands of unknown names, and nobody reads more than the first few suggestions.
    """

    def __init__(self, budget: int = 50) -> None:
        self._budget = budget
        self._known: dict[tuple[str, int], str] = {}

    def suggest(self, name: str, known: Iterable[str], otherwise: str = "") -> str:
        names = list(known)
        key = (name, hash(tuple(names[:SHOWN_AT_MOST])))
        if key not in self._known:
            if len(self._known) >= self._budget:
                return otherwise
            self._known[key] = suggest(name, names, otherwise)
        return self._known[key]
