"""How far the event log was read: of each run that goes on, and of which runs there were."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import msgspec

# A run may be stored a little later than the time that it carries.
OVERLAP = timedelta(seconds=30)


@dataclass(frozen=True)
class Place:
    """How far the log of a run was read."""

    start: int = 0
    """What stands before it is done with. Steps that go on are read again from their start."""
    told: int = 0
    """What was known up to here was told."""
    ended: bool = False


@dataclass(frozen=True)
class Cursor:
    """How far all was read."""

    since: datetime | None = None
    """When the newest run changed that was seen."""
    runs: Mapping[str, Place] = field(default_factory=dict)
    """The runs that go on, and those that ended so lately that they come up once more."""
    changed: Mapping[str, datetime] = field(default_factory=dict)
    """When the runs changed that have ended."""

    @property
    def updated_after(self) -> datetime | None:
        return None if self.since is None else self.since - OVERLAP

    def place(self, run_id: str) -> Place:
        return self.runs.get(run_id, Place())

    def having(self, run_id: str, place: Place, changed: datetime) -> "Cursor":
        """Remember how far a run was read."""
        since = changed if self.since is None else max(self.since, changed)
        ended = {**self.changed, run_id: changed} if place.ended else self.changed
        return replace(self, since=since, runs={**self.runs, run_id: place}, changed=ended)

    def without(self, run_id: str) -> "Cursor":
        """Forget a run."""
        runs = {name: place for name, place in self.runs.items() if name != run_id}
        return replace(self, runs=runs)

    def pruned(self) -> "Cursor":
        """Forget the runs that ended so long ago that they do not come up again."""
        after = self.updated_after
        old = {run for run, at in self.changed.items() if after is not None and at <= after}
        return replace(
            self,
            runs={run: place for run, place in self.runs.items() if run not in old},
            changed={run: at for run, at in self.changed.items() if run not in old},
        )


def read_cursor(text: str | None) -> Cursor:
    """Read a cursor as it was written; none is the beginning."""
    return Cursor() if not text else msgspec.json.decode(text.encode(), type=Cursor)


def write_cursor(cursor: Cursor) -> str:
    """Write a cursor as text."""
    return msgspec.json.encode(cursor).decode()


def utc(moment: datetime) -> datetime:
    """Dagster's run storage gives times in UTC, with and without saying so."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
