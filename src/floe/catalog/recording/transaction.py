"""State of one recording transaction, and the cache that outlives it.

The cache holds only what never changes once committed: the id of a name, a stored schema. What a
transaction adds is staged, and kept when that transaction commits.
"""

import hashlib
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from floe.catalog.changes import HEAD_ID
from floe.catalog.recording.claims import DatasetClaim, EventClaim
from floe.catalog.stores.merging import Answer, Fetched, Lookup, Merge, Merging, Row
from floe.errors import FloeError
from floe.spec.dates import DEFAULT_RULES, Dated, DateRules

HOUR = 3600
NAMES_EPOCH = Lookup("change_head", ("names_epoch",), by=("head_id",))


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
# Enough for a large nightly batch; beyond that the older half is evicted.
MAX_ENTRIES = 100_000


class StagedCache(Generic[Key, Value]):
    """A cache whose new entries count only once the transaction commits."""

    def __init__(self) -> None:
        self._committed: dict[Key, Value] = {}
        self._staged: dict[Key, Value] = {}

    def get(self, key: Key) -> Value | None:
        value = self._staged.get(key)
        return self._committed.get(key) if value is None else value

    def __contains__(self, key: Key) -> bool:
        return key in self._committed or key in self._staged

    def put(self, key: Key, value: Value) -> None:
        self._staged[key] = value

    def commit(self) -> None:
        self._committed.update(self._staged)
        self._staged.clear()
        if len(self._committed) > MAX_ENTRIES:
            for key in list(self._committed)[: MAX_ENTRIES // 2]:
                del self._committed[key]

    def rollback(self) -> None:
        self._staged.clear()

    def clear(self) -> None:
        self._committed.clear()
        self._staged.clear()


class RecorderCache:
    """Everything a recorder caches between groups."""

    def __init__(self) -> None:
        self.processes: StagedCache[str, int] = StagedCache()
        self.datasets: StagedCache[tuple[str, str], int] = StagedCache()
        # Names with a date in them that are declared or curated: the date belongs to the name.
        self.undated: StagedCache[tuple[str, str], bool] = StagedCache()
        self.schemas: StagedCache[bytes, str] = StagedCache()
        self.edges: StagedCache[tuple[Any, ...], tuple[int, int]] = StagedCache()
        self.columns: StagedCache[tuple[Any, ...], bool] = StagedCache()
        self.sighted: StagedCache[tuple[int, str], bool] = StagedCache()
        # The names epoch when names were looked up; a join or a split increments it.
        self.epoch: StagedCache[int, int] = StagedCache()
        self.links: StagedCache[tuple[tuple[str, str], tuple[str, str]], bool] = StagedCache()

    def _all(self) -> Iterator[StagedCache[Any, Any]]:
        yield from (self.processes, self.datasets, self.undated, self.schemas)
        yield from (self.edges, self.columns, self.sighted, self.links, self.epoch)

    def commit(self) -> None:
        for part in self._all():
            part.commit()

    def rollback(self) -> None:
        for part in self._all():
            part.rollback()

    def clear(self) -> None:
        for part in self._all():
            part.clear()


class StaleCacheError(FloeError):
    """Another writer changed rows that this group has read; the group must be retried."""

    def __init__(self) -> None:
        super().__init__("Another writer changed the same rows. Try again.")


class UnstorableClaimError(FloeError):
    """The catalog cannot store what an event claims. Sending it again will not help."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot store this event: {reason}")


@dataclass
class Recording:
    """The state of one transaction: connection, claims, and rows written so far."""

    connection: Connection
    merging: Merging
    cache: RecorderCache
    now: datetime
    claims: Sequence[EventClaim] = ()
    # Also check for rare conflicts (set on retry).
    careful: bool = False
    dates: DateRules = DEFAULT_RULES
    # True for floe's own reports. Events from outside cannot change what floe has reported.
    own: bool = False
    written_runs: list[Answer] = field(default_factory=list)
    # Ids of versions created in this transaction, by dataset and run.
    versions: dict[tuple[int, str], int] = field(default_factory=dict)
    # Ids of versions that runs of this group read, by dataset and tag.
    versions_read: dict[tuple[int, str], int] = field(default_factory=dict)
    changes: list[Row] = field(default_factory=list)
    # Datasets created in this transaction.
    new_datasets: set[int] = field(default_factory=set)
    # Datasets to index again for the search.
    to_index: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.written_now = self.merging.encode_time(self.now)
        self._runs: dict[str, int] = {}
        self._own_runs: set[str] = set()
        self._epoch: Answer = Fetched([])
        self._datasets: dict[tuple[str, str], int] = {}
        self._encoded_times: dict[datetime, Any] = {}
        self._digests: dict[bytes, bytes] = {}

    def query_epoch(self) -> None:
        """Query the names epoch, which changes whenever a name moves to another dataset."""
        self._epoch = self.find(NAMES_EPOCH, [HEAD_ID])

    def check_names(self) -> None:
        """Raise StaleCacheError if names have moved since the cached ids were looked up."""
        answer, self._epoch = self._epoch, Fetched([])
        for (epoch,) in answer.fetchall():
            if self.cache.epoch.get(HEAD_ID) not in (None, epoch):
                raise StaleCacheError
            self.cache.epoch.put(HEAD_ID, epoch)

    def merge(self, merge: Merge, rows: Sequence[Row]) -> None:
        self.merging.merge(self.connection, merge, rows)

    def merge_returning(self, merge: Merge, rows: Sequence[Row]) -> Answer:
        return self.merging.merge_returning(self.connection, merge, rows)

    def find(self, lookup: Lookup, *values: Collection[Any]) -> Answer:
        return self.merging.find(self.connection, lookup, *values)

    def start(self) -> None:
        self.merging.start(self.connection)

    def encode_time(self, value: datetime | None) -> Any:
        if value is None:
            return None
        # Many rows share the time of their event.
        written = self._encoded_times.get(value)
        if written is None:
            written = self._encoded_times[value] = self.merging.encode_time(value)
        return written

    def encode_date(self, value: date | None) -> Any:
        return None if value is None else self.merging.encode_date(value)

    def schema_hash(self, dataset: DatasetClaim) -> str | None:
        """Return the hash of the schema that an event gives a dataset."""
        if dataset.schema is None:
            return None
        return self.cache.schemas.get(self.digest(dataset.schema)) or None

    def digest(self, raw: bytes) -> bytes:
        """Return a short digest, cached because the same bytes come again and again."""
        digest = self._digests.get(raw)
        if digest is None:
            digest = self._digests[raw] = hashlib.blake2b(raw, digest_size=16).digest()
        return digest

    def process_id(self, claim: EventClaim) -> int:
        process_id = self.cache.processes.get(claim.process_key or "")
        assert process_id is not None
        return process_id

    def run_id(self, run_uuid: str) -> int:
        """Return the id of a run written in this transaction."""
        self._load_runs()
        return self._runs[run_uuid]

    def own_runs(self) -> set[str]:
        """Return the runs of this transaction that floe itself has reported."""
        self._load_runs()
        return self._own_runs

    def _load_runs(self) -> None:
        # Groups of floe's own reports rarely need ids, so they usually do not wait for the result.
        while self.written_runs:
            for run_uuid, run_id, own in self.written_runs.pop().fetchall():
                self._runs[str(run_uuid)] = run_id
                if own == "Y":
                    self._own_runs.add(str(run_uuid))

    def dataset_id(self, namespace: str, name: str) -> int:
        key = (namespace, name)
        # A plain dict first: the same few datasets are looked up again and again.
        dataset_id = self._datasets.get(key)
        if dataset_id is None:
            dataset_id = self.cache.datasets.get(key)
            assert dataset_id is not None
            self._datasets[key] = dataset_id
        return dataset_id

    def dated(self, namespace: str, name: str) -> Dated | None:
        """Parse the dates in a dataset's name; return None for a declared name."""
        dated = self.dates.fold(name)
        if dated is None or (namespace, name) in self.cache.undated:
            return None
        return dated

    def change(
        self,
        kind: str,
        *,
        dataset_id: int | None = None,
        version_id: int | None = None,
        process_id: int | None = None,
        run_id: int | None = None,
        business_date: date | None = None,
    ) -> None:
        """Queue a change; it gets its position as the last step before the commit."""
        day = self.encode_date(business_date)
        self.changes.append(
            (kind, dataset_id, version_id, process_id, run_id, day, self.written_now)
        )


CHANGE_COLUMNS = (
    "kind",
    "dataset_id",
    "dataset_version_id",
    "process_id",
    "run_id",
    "business_date",
    "occurred_at",
)


def hour_of(time: datetime) -> int:
    """Return the hours since 1970: the precision of edge sightings."""
    return int(time.timestamp()) // HOUR


def start_of(hour: int) -> datetime:
    """Return the time at which an hour starts."""
    return datetime.fromtimestamp(hour * HOUR, UTC)


def widen(spans: dict[Any, tuple[Any, Any]], key: Any, value: Any) -> None:
    """Widen the (first, last) span of a key so that it includes a value."""
    known = spans.get(key)
    if known is None:
        spans[key] = (value, value)
    elif value < known[0]:
        spans[key] = (value, known[1])
    elif value > known[1]:
        spans[key] = (known[0], value)


class NewEvents:
    """Tells which events of a group are new; the result is fetched on first use."""

    def __init__(self, recording: Recording, answer: Answer) -> None:
        self._recording, self._answer = recording, answer

    @cached_property
    def _received(self) -> dict[str, object]:
        """The first receipt of events that are new, or that were only history until now."""
        decode_time = self._recording.merging.decode_time
        return {event_hash: decode_time(at) for event_hash, at in self._answer.fetchall()}

    def is_new(self, claim: EventClaim) -> bool:
        """Tell whether an event was not stored before."""
        return self._received.get(claim.hash) == claim.received_at

    def is_live(self, claim: EventClaim) -> bool:
        """Tell whether a live event is not stored yet, or was stored only as history."""
        return not claim.historical and claim.hash in self._received
