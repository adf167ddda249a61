"""Cut the partitions of a backfill into batches, each for one run. Pure: no Dagster instance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import AssetKey

Assets = frozenset[AssetKey]


@dataclass(frozen=True)
class Batch:
    """Partitions that one run makes, in order."""

    keys: tuple[str, ...]
    assets: Assets
    """What is still to be made for them."""

    @property
    def shown(self) -> str:
        """The batch for people."""
        return self.keys[0] if len(self.keys) == 1 else f"{self.keys[0]} … {self.keys[-1]}"


def cut(
    keys: Sequence[str], missing: Mapping[str, Assets], size: int, width: int = 1
) -> Iterator[Batch]:
    """Yield batches of at most so many keys, each of which lacks the same assets; in order.

    A run takes a range of keys. With a second dimension beside time, `width` of them belong to a
    date, and a range is either whole dates or a part of one.
    """
    place = 0
    while place < len(keys):
        lacking = missing[keys[place]]
        end = place + 1
        while end < len(keys) and end - place < size and missing[keys[end]] == lacking:
            end += 1
        end = place + _fitting(place % width, end - place, width)
        if lacking:
            yield Batch(tuple(keys[place:end]), lacking)
        place = end


def _fitting(offset: int, length: int, width: int) -> int:
    if offset == 0 and length >= width:
        return length // width * width
    return min(length, width - offset)
