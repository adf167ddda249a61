"""Cut the partitions of a backfill into batches, one run each. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dagster import AssetKey

Assets = frozenset[AssetKey]


@dataclass(frozen=True)
class Batch:
    """The partitions of one run, in order."""

    keys: tuple[str, ...]
    assets: Assets
    """The assets that are left to run for them."""

    @property
    def shown(self) -> str:
        """The first and last key, for messages."""
        return self.keys[0] if len(self.keys) == 1 else f"{self.keys[0]} … {self.keys[-1]}"


def cut(
    keys: Sequence[str], missing: Mapping[str, Assets], size: int, width: int = 1
) -> Iterator[Batch]:
    """Yield batches of at most `size` keys, in order; all keys of a batch lack the same assets.

    A run takes a range of keys. With a second dimension besides time, each date has `width` keys,
    and a range is either whole dates or a part of one date.
    """
    start = 0
    while start < len(keys):
        lacking = missing[keys[start]]
        end = start + 1
        while end < len(keys) and end - start < size and missing[keys[end]] == lacking:
            end += 1
        end = start + _aligned_length(start % width, end - start, width)
        if lacking:
            yield Batch(tuple(keys[start:end]), lacking)
        start = end


def _aligned_length(offset: int, length: int, width: int) -> int:
    if offset == 0 and length >= width:
        return length // width * width
    return min(length, width - offset)
