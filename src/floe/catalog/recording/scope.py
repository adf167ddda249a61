"""What every part of a recording works with."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from sqlalchemy import Connection

from floe.catalog.changes import HEAD_ID
from floe.catalog.recording.claims import DatasetClaim, EventClaim
from floe.catalog.recording.memory import Memory
from floe.catalog.stores.merging import Answer, Fetched, Lookup, Merge, Merging, Row
from floe.errors import FloeError
from floe.spec.dates import DEFAULT_RULES, Dated, DateRules

HOUR = 3600
NAMES_EPOCH = Lookup("change_head", ("names_epoch",), by=("head_id",))


class StaleKnowledgeError(FloeError):
    """Another writer was faster: what was read is no longer so, and the group has to start anew."""

    def __init__(self) -> None:
        super().__init__("Another writer changed the same rows. Try again.")


class UnstorableClaimError(FloeError):
    """The catalog cannot take what an event claims. Sending it again will not help."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"The catalog cannot store this event: {reason}")


@dataclass
class Recording:
    """One transaction's work: its connection, what is known, and what it found out."""

    connection: Connection
    merging: Merging
    memory: Memory
    now: datetime
    claims: Sequence[EventClaim] = ()
    # Whether what is hardly ever so has to be looked for.
    careful: bool = False
    dates: DateRules = DEFAULT_RULES
    # Whether these are floe's own reports. Others cannot change what floe has reported itself.
    own: bool = False
    written_runs: list[Answer] = field(default_factory=list)
    # Versions that were made here, by dataset and run.
    versions: dict[tuple[int, str], int] = field(default_factory=dict)
    # Versions that runs here have read, by dataset and tag.
    versions_read: dict[tuple[int, str], int] = field(default_factory=dict)
    changes: list[Row] = field(default_factory=list)
    # Datasets that were made here.
    made: set[int] = field(default_factory=set)
    # Datasets whose words for the search have changed.
    reworded: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.written_now = self.merging.moment(self.now)
        self._runs: dict[str, int] = {}
        self._own_runs: set[str] = set()
        self._epoch: Answer = Fetched([])
        self._datasets: dict[tuple[str, str], int] = {}
        self._moments: dict[datetime, Any] = {}
        self._digests: dict[bytes, bytes] = {}

    def ask_epoch(self) -> None:
        """Ask whether names still mean what they meant when they were looked up."""
        self._epoch = self.find(NAMES_EPOCH, [HEAD_ID])

    def check_names(self) -> None:
        """Start over if names mean other datasets by now: the numbers here may be gone."""
        answer, self._epoch = self._epoch, Fetched([])
        for (epoch,) in answer.fetchall():
            if self.memory.epoch.get(HEAD_ID) not in (None, epoch):
                raise StaleKnowledgeError
            self.memory.epoch.put(HEAD_ID, epoch)

    def merge(self, merge: Merge, rows: Sequence[Row]) -> None:
        self.merging.merge(self.connection, merge, rows)

    def merge_returning(self, merge: Merge, rows: Sequence[Row]) -> Answer:
        return self.merging.merge_returning(self.connection, merge, rows)

    def find(self, lookup: Lookup, *values: Collection[Any]) -> Answer:
        return self.merging.find(self.connection, lookup, *values)

    def start(self) -> None:
        self.merging.start(self.connection)

    def moment(self, value: datetime | None) -> Any:
        if value is None:
            return None
        # Many rows share the time of their event.
        written = self._moments.get(value)
        if written is None:
            written = self._moments[value] = self.merging.moment(value)
        return written

    def day(self, value: date | None) -> Any:
        return None if value is None else self.merging.day(value)

    def schema_hash(self, dataset: DatasetClaim) -> str | None:
        """The hash of the schema that an event gives a dataset; schemas are written before."""
        if dataset.schema is None:
            return None
        return self.memory.schemas.get(self.digest(dataset.schema)) or None

    def digest(self, raw: bytes) -> bytes:
        """A short name for bytes that come again and again."""
        digest = self._digests.get(raw)
        if digest is None:
            digest = self._digests[raw] = hashlib.blake2b(raw, digest_size=16).digest()
        return digest

    def process_id(self, claim: EventClaim) -> int:
        number = self.memory.processes.get(claim.process_key or "")
        assert number is not None
        return number

    def run_id(self, run_uuid: str) -> int:
        """The number of a run that was written here."""
        self._learn_runs()
        return self._runs[run_uuid]

    def own_runs(self) -> set[str]:
        """The runs written here that floe has reported itself, now or before."""
        self._learn_runs()
        return self._own_runs

    def _learn_runs(self) -> None:
        # Groups of floe's own reports hardly ever ask, and so never wait for the answer.
        while self.written_runs:
            for run_uuid, number, own in self.written_runs.pop().fetchall():
                self._runs[str(run_uuid)] = number
                if own == "Y":
                    self._own_runs.add(str(run_uuid))

    def dataset_id(self, namespace: str, name: str) -> int:
        name_of = (namespace, name)
        # The same few are asked for again and again.
        number = self._datasets.get(name_of)
        if number is None:
            number = self.memory.datasets.get(name_of)
            assert number is not None
            self._datasets[name_of] = number
        return number

    def dated(self, namespace: str, name: str) -> Dated | None:
        """Return what the dates in a dataset's name say; a declared name says nothing."""
        dated = self.dates.fold(name)
        if dated is None or (namespace, name) in self.memory.undated:
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
        """Remember a change; it gets its position as the last thing before the commit."""
        day = self.day(business_date)
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


def hour_of(moment: datetime) -> int:
    """The hour of a moment, counted from 1970: how finely sightings of edges are kept."""
    return int(moment.timestamp()) // HOUR


def start_of(hour: int) -> datetime:
    """The moment at which an hour starts."""
    return datetime.fromtimestamp(hour * HOUR, UTC)


def widen(spans: dict[Any, tuple[Any, Any]], key: Any, value: Any) -> None:
    """Let a span of sightings hold a value."""
    known = spans.get(key)
    if known is None:
        spans[key] = (value, value)
    elif value < known[0]:
        spans[key] = (value, known[1])
    elif value > known[1]:
        spans[key] = (known[0], value)
