"""The keys of rows that are to be merged."""

from collections.abc import Sequence
from typing import Any

from floe.errors import FloeError

MOST_SHOWN = 3


class DuplicateKeysError(FloeError):
    """Rows that are to be merged have the same keys twice."""

    def __init__(self, dataset: str, keys: Sequence[str], twice: Sequence[Sequence[Any]]) -> None:
        """`twice` has the values of the keys, and how many rows have them."""
        shown = [_shown(keys, values) for values in twice[:MOST_SHOWN]]
        more = ", and others" if len(twice) > MOST_SHOWN else ""
        super().__init__(
            f"What is to be merged into '{dataset}' has more than one row for "
            f"{'; '.join(shown)}{more}. Make the keys unique first."
        )


def _shown(keys: Sequence[str], values: Sequence[Any]) -> str:
    pairs = zip(keys, values, strict=False)
    named = ", ".join(f"{key} = {'null' if value is None else value}" for key, value in pairs)
    return f"{named} ({values[len(keys)]} rows)"
