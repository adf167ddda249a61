"""What the recorder knows already, so that known things cost no statement.

It holds only what never changes once it is committed: the number of a name, a schema that is
stored. What a transaction finds out is staged, and kept when that transaction commits.
"""

from collections.abc import Hashable, Iterator
from typing import Any, Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
# Enough for what a large bank touches in a night; past that the older half is forgotten.
MOST_ENTRIES = 100_000


class Known(Generic[Key, Value]):
    """One kind of knowledge."""

    def __init__(self) -> None:
        self._kept: dict[Key, Value] = {}
        self._staged: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._staged.get(key)
        return self._kept.get(key) if value is None else value

    def __contains__(self, key: Key) -> bool:
        return key in self._kept or key in self._staged

    def put(self, key: Key, value: Value) -> None:
        self._staged[key] = value

    def commit(self) -> None:
        self._kept.update(self._staged)
        self._staged.clear()
        if len(self._kept) > MOST_ENTRIES:
            for key in list(self._kept)[: MOST_ENTRIES // 2]:
                del self._kept[key]

    def rollback(self) -> None:
        self._staged.clear()

    def forget(self) -> None:
        self._kept.clear()
        self._staged.clear()


class Memory:
    """All that is known."""

    def __init__(self) -> None:
        self.processes: Known[str, int] = Known()
        self.datasets: Known[tuple[str, str], int] = Known()
        # Names with a date in them that a project or a person has given to a dataset.
        self.undated: Known[tuple[str, str], bool] = Known()
        self.schemas: Known[bytes, str] = Known()
        self.edges: Known[tuple[Any, ...], tuple[int, int]] = Known()
        self.columns: Known[tuple[Any, ...], bool] = Known()
        self.sighted: Known[tuple[int, str], bool] = Known()
        # The epoch of names when they were looked up: after a join or a split there is another.
        self.epoch: Known[int, int] = Known()
        self.links: Known[tuple[tuple[str, str], tuple[str, str]], bool] = Known()

    def _all(self) -> Iterator[Known[Any, Any]]:
        yield from (self.processes, self.datasets, self.undated, self.schemas)
        yield from (self.edges, self.columns, self.sighted, self.links, self.epoch)

    def commit(self) -> None:
        for known in self._all():
            known.commit()

    def rollback(self) -> None:
        for known in self._all():
            known.rollback()

    def forget(self) -> None:
        for known in self._all():
            known.forget()
