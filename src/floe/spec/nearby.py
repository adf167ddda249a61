"""Suggest the name that was probably meant."""

from collections.abc import Iterable
from difflib import get_close_matches

SHOWN_AT_MOST = 8


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is closest in spelling, if one is close.

    Letters in the wrong order are the likeliest slip: such a name comes first.
    """
    candidates = {candidate.lower(): candidate for candidate in known}
    close = get_close_matches(name.lower(), candidates, n=5)
    swapped = (one for one in close if sorted(one) == sorted(name.lower()))
    found = next(swapped, close[0] if close else None)
    return candidates[found] if found is not None else None


def suggest(name: str, known: Iterable[str], otherwise: str = "") -> str:
    """Say what was probably meant, else what there is to choose from."""
    names = sorted(known)
    near = nearest(name, names)
    if near is not None:
        return f"Did you mean '{near}'?"
    if otherwise or not names:
        return otherwise
    return choices(names)


def choices(names: list[str]) -> str:
    """List what can be written, cut short when it is long."""
    shown = ", ".join(names[:SHOWN_AT_MOST])
    return f"Choose one of: {shown}{', …' if len(names) > SHOWN_AT_MOST else '.'}"


class Suggestions:
    """Suggestions for one run of checks, with a budget so that their cost stays small.

    Comparing spellings costs time for each pair of names. A project whose include was
    forgotten has thousands of unknown names, and after the first few nobody reads them.
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
