"""Versions that foreign runs announce when they complete.

Which of two versions of a date is READY goes by when they were made, not by which came first.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from floe.catalog.drift_claims import FOREIGN_VERSION, OPEN
from floe.catalog.recording.claims import Seen
from floe.catalog.recording.merges import (
    ANNOUNCED_VERSIONS,
    DATASET_EVENTS,
    DRIFT_CLAIMS,
    NEW_VERSIONS,
    VERSION_STATES,
)
from floe.catalog.recording.parts import (
    Announced,
    declared_location,
    has_parts,
    list_announced,
)
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Answer, Assign, Fetched, Lookup, Row
from floe.catalog.versions import EXTERNAL, READY, SUPERSEDED, WRITTEN
from floe.spec.dates import SEPARATOR
from floe.spec.identity import version_tag

LIVE = frozenset({READY, SUPERSEDED})
# What a version leaves behind that only history knows of: nobody was told.
IMPORTED = "VERSION_IMPORTED"
_COLUMNS = (
    "dataset_version_id",
    "dataset_id",
    "version_tag",
    "business_date",
    "seq",
    "state",
    "produced_at",
    "produced_by_run_id",
    "partition_key",
)
OF_DATE = Lookup("dataset_version", _COLUMNS, by=("dataset_id", "business_date"))
OF_RUN = Lookup("dataset_version", _COLUMNS, by=("produced_by_run_id",))
OF_TAG = Lookup("dataset_version", _COLUMNS, by=("dataset_id", "version_tag"))
OF_DATASET = Lookup("dataset_version", _COLUMNS, by=("dataset_id",))
LIVES = Lookup(
    "dataset_event", ("dataset_version_id", "event_type"), by=("dataset_id", "dataset_version_id")
)
RULES = Lookup(
    "dataset",
    ("dataset_id", "timezone", "needs_validation", "declaration_json", "floe_writes"),
    by=("dataset_id",),
)
# Set by floe's own reports, and by what a project declares.
FLOE_WRITES = Assign("dataset", "dataset_id", "floe_writes", "1 = 1")


@dataclass(slots=True)
class Stored:
    """A version that is there, or is about to be."""

    version_id: int | None
    dataset_id: int
    tag: str
    business_date: date | None
    seq: int
    state: str
    at: datetime
    run_uuid: str | None
    partition: str | None = None

    @property
    def age(self) -> tuple[datetime, str]:
        return self.at, self.run_uuid or ""


def ask_rules(recording: Recording) -> Answer:
    """Ask what the datasets say on how their versions are made, ahead of when it is needed."""
    numbers = {
        recording.dataset_id(one.namespace, one.name)
        for claim in recording.claims
        for one in claim.datasets
        if one.writes and claim.run is not None and claim.run.seen & Seen.COMPLETED
    }
    return recording.find(RULES, numbers) if numbers else Fetched([])


def record_versions(recording: Recording, rules: Answer) -> None:
    """Make a version of each date and partition that a completed run wrote of an output."""
    locations = {}
    if has_parts(recording):
        # Only these groups wait for the answer here.
        rules = Fetched(rules.fetchall())
        for number, _, _, declaration, _ in rules.fetchall():
            if location := declared_location(declaration):
                locations[number] = location
    announced = list_announced(recording, locations)
    if announced:
        # From here on one writer at a time: numbers and positions are given in one order.
        recording.merging.lock_log(recording.connection)
        _Shelf(recording, announced, rules).put(announced)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _date_in(zone: str, one: Announced) -> date:
    return (one.nominal_at or one.at).astimezone(_zone(zone)).date()


class _Rules(NamedTuple):
    """What a dataset says on how its versions are made."""

    timezone: str | None
    needs_validation: bool
    floe_writes: bool


class _Shelf:
    """The versions of the datasets and dates in question, as they are and as they shall be."""

    def __init__(self, recording: Recording, announced: Sequence[Announced], rules: Answer) -> None:
        self._recording = recording
        self._by_date: defaultdict[tuple[int, date], list[Stored]] = defaultdict(list)
        self._by_run: defaultdict[tuple[int, str], list[Stored]] = defaultdict(list)
        self._by_tag: dict[tuple[int, str], Stored] = {}
        # Which dates are in question the rules decide, and nearly always it is that of UTC: so
        # its versions are asked for along with the rules.
        likely = {one.business_date or _date_in("UTC", one) for one in announced}
        answers = self._ask(announced, likely)
        numbers = recording.merging.take_numbers(
            recording.connection, "dataset_version", "dataset_version_id", len(announced)
        )
        recording.check_names()
        self._rules = {
            number: _Rules(zone, validate == "Y", writes == "Y")
            for number, zone, validate, _, writes in rules.fetchall()
        }
        self._dates = {id(one): self._date_of(one) for one in announced}
        if unlikely := set(self._dates.values()) - likely:
            answers.append(self._ask_dates(announced, unlikely))
        for answer in answers:
            for row in answer.fetchall():
                self._shelve(self._stored(row))
        self._free = [number for (number,) in reversed(numbers.fetchall())]

    def put(self, announced: Sequence[Announced]) -> None:
        """Store what is announced, and settle which version of each date is READY."""
        announced = self._without_outsiders(announced)
        new: list[tuple[Announced, Stored]] = []
        confirmed: list[tuple[Announced, Stored]] = []
        again: list[tuple[Announced, Stored]] = []
        for one in announced:
            known = self._by_tag.get((one.dataset_id, one.tag or ""))
            there = self._made_by(one)
            if there is not None:
                again.append((one, there))
            elif known is None:
                new.append((one, self._place(one)))
            elif known.state == EXTERNAL:
                confirmed.append((one, self._confirm(one, known)))
        changed = self._settle([one for one, _ in (*new, *confirmed)])
        self._insert(new)
        self._rewrite(confirmed)
        self._recording.merging.assign(
            self._recording.connection,
            VERSION_STATES,
            [(stored.version_id or 0, stored.state) for stored in changed],
        )
        self._note([*new, *confirmed, *self._untold(again)])

    def _made_by(self, one: Announced) -> Stored | None:
        """Return the version that the run has made already of the same date and partition."""
        made = self._by_run.get((one.dataset_id, one.run_uuid), ())
        if not one.is_part:
            return next(iter(made), None)
        part = (self._dates[id(one)], self._partition_of(one))
        return next((old for old in made if (old.business_date, old.partition) == part), None)

    def _partition_of(self, one: Announced) -> str | None:
        """The key of a partition has its date in it, so that no two dates share one."""
        if one.partition is None:
            return None
        return f"{self._dates[id(one)]}{SEPARATOR}{one.partition}"

    def _without_outsiders(self, announced: Sequence[Announced]) -> Sequence[Announced]:
        """Leave out versions that others claim of datasets that floe writes: those are drift."""
        recording = self._recording
        if recording.own:
            new = {one.dataset_id for one in announced if not self._floe_writes(one)}
            rows = [(number, "Y") for number in sorted(new)]
            recording.merging.assign(recording.connection, FLOE_WRITES, rows)
            return announced
        foreign = [one for one in announced if self._floe_writes(one)]
        if not foreign:
            return announced
        claims = {(one.dataset_id, one.process_id): one for one in foreign}
        recording.merge(
            DRIFT_CLAIMS,
            [_drift_row(recording, claims[key], self._dates) for key in sorted(claims)],
        )
        return [one for one in announced if not self._floe_writes(one)]

    def _floe_writes(self, one: Announced) -> bool:
        return self._rules[one.dataset_id].floe_writes

    def _untold(self, again: Sequence[tuple[Announced, Stored]]) -> list[tuple[Announced, Stored]]:
        """Versions that were history until now."""
        live = [
            (one, stored)
            for one, stored in again
            if not one.historical and stored.state in (*LIVE, WRITTEN)
        ]
        if not live:
            return []
        lives = self._recording.find(
            LIVES,
            {stored.dataset_id for _, stored in live},
            {stored.version_id for _, stored in live},
        )
        kinds = defaultdict(set)
        for number, kind in lives.fetchall():
            kinds[number].add(kind)
        told = {f"VERSION_{READY}", f"VERSION_{WRITTEN}"}
        return [
            (one, stored)
            for one, stored in live
            if IMPORTED in kinds[stored.version_id] and told.isdisjoint(kinds[stored.version_id])
        ]

    def _date_of(self, one: Announced) -> date:
        """The business date: as said, as the schedule has it, or as the clock there had it."""
        return one.business_date or _date_in(self._rules[one.dataset_id].timezone or "UTC", one)

    def _ask(self, announced: Sequence[Announced], days: set[date]) -> list[Answer]:
        recording = self._recording
        answers = [
            self._ask_dates(announced, days),
            recording.find(OF_RUN, {one.run_uuid for one in announced}),
        ]
        tags = {one.tag for one in announced if one.tag}
        if tags:
            numbers = {one.dataset_id for one in announced}
            answers.append(recording.find(OF_TAG, numbers, tags))
        if recording.careful:
            # A tag that would be made here may have been given outright for another date.
            answers.append(recording.find(OF_DATASET, {one.dataset_id for one in announced}))
        return answers

    def _ask_dates(self, announced: Sequence[Announced], days: set[date]) -> Answer:
        recording, numbers = self._recording, {one.dataset_id for one in announced}
        return recording.find(OF_DATE, numbers, {recording.day(day) for day in days})

    def _stored(self, row: Row) -> Stored:
        version_id, dataset_id, tag, day, seq, state, at, run_uuid, partition = row
        return Stored(
            version_id,
            dataset_id,
            tag,
            None if day is None else self._recording.merging.as_day(day),
            seq,
            state,
            self._recording.merging.as_moment(at),
            None if run_uuid is None else str(run_uuid),
            partition,
        )

    def _shelve(self, stored: Stored) -> None:
        if (stored.dataset_id, stored.tag) in self._by_tag:
            return
        self._by_tag[stored.dataset_id, stored.tag] = stored
        if stored.business_date is not None:
            self._by_date[stored.dataset_id, stored.business_date].append(stored)
        if stored.run_uuid is not None:
            self._by_run[stored.dataset_id, stored.run_uuid].append(stored)

    def _place(self, one: Announced) -> Stored:
        day, partition = self._dates[id(one)], self._partition_of(one)
        same = [old for old in self._by_date[one.dataset_id, day] if old.partition == partition]
        key: date | str = partition or day
        seq = max((stored.seq for stored in same), default=0) + 1
        # A producer may have given its version a tag that looks like one of floe's.
        while not one.tag and (one.dataset_id, version_tag(key, seq)) in self._by_tag:
            seq += 1
        stored = Stored(
            version_id=None,
            dataset_id=one.dataset_id,
            tag=one.tag or version_tag(key, seq),
            business_date=day,
            seq=seq,
            state=self._first_state(one),
            at=one.at,
            run_uuid=one.run_uuid,
            partition=partition,
        )
        self._shelve(stored)
        return stored

    def _first_state(self, one: Announced) -> str:
        return WRITTEN if self._rules[one.dataset_id].needs_validation else READY

    def _confirm(self, one: Announced, known: Stored) -> Stored:
        """A version that somebody read before it was announced is now announced."""
        day = self._dates[id(one)]
        known.state, known.at, known.run_uuid = self._first_state(one), one.at, one.run_uuid
        known.business_date, known.partition = day, self._partition_of(one)
        neighbours = self._by_date[one.dataset_id, day]
        if known not in neighbours:
            neighbours.append(known)
        return known

    def _settle(self, announced: Sequence[Announced]) -> list[Stored]:
        """Let the newest version of each date be READY; return those that change.

        Only dates that got a version are looked at. For the others somebody else may have decided
        since which version is READY: one of floe's own runs, for instance. Each partition of a
        date has a newest version of its own.
        """
        changed = []
        # Of other dates not all versions are known here.
        dates = {(one.dataset_id, self._dates[id(one)]) for one in announced}
        for versions in (self._by_date[one] for one in sorted(dates)):
            live = [stored for stored in versions if stored.state in LIVE]
            newest: dict[str | None, Stored] = {}
            for stored in sorted(live, key=lambda stored: stored.age):
                newest[stored.partition] = stored
            for stored in live:
                state = READY if stored is newest[stored.partition] else SUPERSEDED
                if stored.state != state:
                    stored.state = state
                    if stored.version_id is not None:
                        changed.append(stored)
        return changed

    def _insert(self, new: Sequence[tuple[Announced, Stored]]) -> None:
        # No writer is beside this one, so that none of them can be there already.
        recording, rows = self._recording, []
        for one, stored in sorted(new, key=lambda pair: (pair[1].dataset_id, pair[1].tag)):
            stored.version_id = self._free.pop()
            recording.versions[stored.dataset_id, one.run_uuid] = stored.version_id
            rows.append((stored.version_id, *_row(recording, one, stored)))
        recording.merge(NEW_VERSIONS, rows)

    def _rewrite(self, confirmed: Sequence[tuple[Announced, Stored]]) -> None:
        rows = [_row(self._recording, one, stored) for one, stored in confirmed]
        self._recording.merge(ANNOUNCED_VERSIONS, rows)

    def _note(self, announced: Sequence[tuple[Announced, Stored]]) -> None:
        """Leave the event of each version; READY is a change that others wait for."""
        recording, rows = self._recording, []
        for one, stored in announced:
            # One that was late and is superseded already was READY all the same.
            kind = f"VERSION_{WRITTEN if stored.state == WRITTEN else READY}"
            told = IMPORTED if one.historical else kind
            rows.append(
                (stored.dataset_id, stored.version_id, told, one.run_uuid, recording.written_now)
            )
            if not one.historical:
                recording.change(
                    kind,
                    dataset_id=stored.dataset_id,
                    version_id=stored.version_id,
                    run_id=recording.run_id(one.run_uuid),
                    business_date=stored.business_date,
                )
        recording.merge(DATASET_EVENTS, rows)


def _drift_row(recording: Recording, one: Announced, dates: dict[int, date]) -> Row:
    detail = {
        "version": one.tag,
        "business_date": dates[id(one)].isoformat(),
        "run": one.run_uuid,
    }
    seen = recording.moment(one.at)
    text = msgspec.json.encode(detail).decode()
    return (FOREIGN_VERSION, one.dataset_id, one.process_id, OPEN, seen, seen, text)


def _row(recording: Recording, one: Announced, stored: Stored) -> Row:
    return (
        stored.dataset_id,
        stored.tag,
        recording.day(stored.business_date),
        stored.seq,
        stored.state,
        one.path,
        one.rows,
        one.size,
        one.schema_hash,
        stored.run_uuid,
        recording.moment(stored.at),
        "N",
        one.claim.metadata,
        stored.partition,
    )
