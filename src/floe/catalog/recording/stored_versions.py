"""Store the versions that completed runs announce, and decide which one is READY.

Of two versions of a date the one produced later is READY, whichever event arrived first.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

import msgspec

from floe.catalog.drift import FOREIGN_VERSION, OPEN
from floe.catalog.recording.announced_versions import (
    Announced,
    declared_location,
    has_parts,
    list_announced,
)
from floe.catalog.recording.claims import Seen
from floe.catalog.recording.merge_rules import (
    ANNOUNCED_VERSIONS,
    DATASET_EVENTS,
    DRIFT_CLAIMS,
    NEW_VERSIONS,
    VERSION_STATES,
)
from floe.catalog.recording.transaction import Recording
from floe.catalog.stores.merging import Answer, Assign, Fetched, Lookup, Row
from floe.catalog.versions import EXTERNAL, READY, SUPERSEDED, WRITTEN
from floe.spec.dates import SEPARATOR
from floe.spec.identity import version_tag

LIVE = frozenset({READY, SUPERSEDED})
# The event of a version that was only imported as history and triggered nothing.
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
VERSION_EVENTS = Lookup(
    "dataset_event", ("dataset_version_id", "event_type"), by=("dataset_id", "dataset_version_id")
)
RULES = Lookup(
    "dataset",
    ("dataset_id", "timezone", "needs_validation", "declaration_json", "floe_writes"),
    by=("dataset_id",),
)
# Set by floe's own reports and by project declarations.
FLOE_WRITES = Assign("dataset", "dataset_id", "floe_writes", "1 = 1")


@dataclass(slots=True)
class Stored:
    """A version that is stored, or about to be."""

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
    def sort_key(self) -> tuple[datetime, str]:
        return self.at, self.run_uuid or ""


def query_rules(recording: Recording) -> Answer:
    """Query the version rules of the written datasets ahead of use."""
    dataset_ids = {
        recording.dataset_id(dataset.namespace, dataset.name)
        for claim in recording.claims
        for dataset in claim.datasets
        if dataset.writes and claim.run is not None and claim.run.seen & Seen.COMPLETED
    }
    return recording.find(RULES, dataset_ids) if dataset_ids else Fetched([])


def record_versions(recording: Recording, rules: Answer) -> None:
    """Store a version for each date and partition that a completed run wrote."""
    locations = {}
    if has_parts(recording):
        # Only these groups wait for the result here.
        rules = Fetched(rules.fetchall())
        for dataset_id, _, _, declaration, _ in rules.fetchall():
            if location := declared_location(declaration):
                locations[dataset_id] = location
    announced = list_announced(recording, locations)
    if announced:
        # From here on one writer at a time, so that sequence numbers and positions agree.
        recording.merging.lock_log(recording.connection)
        _VersionStore(recording, announced, rules).store(announced)


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _date_in(zone: str, version: Announced) -> date:
    return (version.nominal_at or version.at).astimezone(_zone(zone)).date()


class _Rules(NamedTuple):
    """The settings of a dataset that decide how its versions are stored."""

    timezone: str | None
    needs_validation: bool
    floe_writes: bool


class _VersionStore:
    """The versions of the affected datasets and dates: loaded, changed, written back."""

    def __init__(self, recording: Recording, announced: Sequence[Announced], rules: Answer) -> None:
        self._recording = recording
        self._by_date: defaultdict[tuple[int, date], list[Stored]] = defaultdict(list)
        self._by_run: defaultdict[tuple[int, str], list[Stored]] = defaultdict(list)
        self._by_tag: dict[tuple[int, str], Stored] = {}
        # The dates depend on the time zones in the rules, nearly always UTC. So the versions of
        # the UTC dates are queried before the rules have arrived.
        likely_dates = {version.business_date or _date_in("UTC", version) for version in announced}
        answers = self._query(announced, likely_dates)
        ids = recording.merging.reserve_ids(
            recording.connection, "dataset_version", "dataset_version_id", len(announced)
        )
        recording.check_names()
        self._rules = {
            dataset_id: _Rules(zone, validate == "Y", writes == "Y")
            for dataset_id, zone, validate, _, writes in rules.fetchall()
        }
        self._dates = {id(version): self._date_of(version) for version in announced}
        if other_dates := set(self._dates.values()) - likely_dates:
            answers.append(self._query_dates(announced, other_dates))
        for answer in answers:
            for row in answer.fetchall():
                self._add(self._stored(row))
        self._free_ids = [version_id for (version_id,) in reversed(ids.fetchall())]

    def store(self, announced: Sequence[Announced]) -> None:
        """Store the announced versions, and decide which version of each date is READY."""
        announced = self._without_foreign(announced)
        new: list[tuple[Announced, Stored]] = []
        confirmed: list[tuple[Announced, Stored]] = []
        repeated: list[tuple[Announced, Stored]] = []
        for version in announced:
            known = self._by_tag.get((version.dataset_id, version.tag or ""))
            existing = self._version_of_run(version)
            if existing is not None:
                repeated.append((version, existing))
            elif known is None:
                new.append((version, self._create(version)))
            elif known.state == EXTERNAL:
                confirmed.append((version, self._confirm(version, known)))
        changed = self._update_states([version for version, _ in (*new, *confirmed)])
        self._insert(new)
        self._rewrite(confirmed)
        self._recording.merging.assign(
            self._recording.connection,
            VERSION_STATES,
            [(stored.version_id or 0, stored.state) for stored in changed],
        )
        self._announce([*new, *confirmed, *self._only_imported(repeated)])

    def _version_of_run(self, version: Announced) -> Stored | None:
        """Return the stored version of the same run, date and partition."""
        stored = self._by_run.get((version.dataset_id, version.run_uuid), ())
        if not version.is_part:
            return next(iter(stored), None)
        part = (self._dates[id(version)], self._partition_of(version))
        return next((old for old in stored if (old.business_date, old.partition) == part), None)

    def _partition_of(self, version: Announced) -> str | None:
        """Return the partition key; it includes the date, so that no two dates share one."""
        if version.partition is None:
            return None
        return f"{self._dates[id(version)]}{SEPARATOR}{version.partition}"

    def _without_foreign(self, announced: Sequence[Announced]) -> Sequence[Announced]:
        """Drop versions from outside for datasets that floe writes; record them as drift."""
        recording = self._recording
        if recording.own:
            new = {version.dataset_id for version in announced if not self._floe_writes(version)}
            rows = [(dataset_id, "Y") for dataset_id in sorted(new)]
            recording.merging.assign(recording.connection, FLOE_WRITES, rows)
            return announced
        foreign = [version for version in announced if self._floe_writes(version)]
        if not foreign:
            return announced
        claims = {(version.dataset_id, version.process_id): version for version in foreign}
        recording.merge(
            DRIFT_CLAIMS,
            [_drift_row(recording, claims[key], self._dates) for key in sorted(claims)],
        )
        return [version for version in announced if not self._floe_writes(version)]

    def _floe_writes(self, version: Announced) -> bool:
        return self._rules[version.dataset_id].floe_writes

    def _only_imported(
        self, repeated: Sequence[tuple[Announced, Stored]]
    ) -> list[tuple[Announced, Stored]]:
        """Return live versions that were stored only as history until now."""
        live = [
            (version, stored)
            for version, stored in repeated
            if not version.historical and stored.state in (*LIVE, WRITTEN)
        ]
        if not live:
            return []
        events = self._recording.find(
            VERSION_EVENTS,
            {stored.dataset_id for _, stored in live},
            {stored.version_id for _, stored in live},
        )
        kinds = defaultdict(set)
        for version_id, kind in events.fetchall():
            kinds[version_id].add(kind)
        live_kinds = {f"VERSION_{READY}", f"VERSION_{WRITTEN}"}
        return [
            (version, stored)
            for version, stored in live
            if IMPORTED in kinds[stored.version_id]
            and live_kinds.isdisjoint(kinds[stored.version_id])
        ]

    def _date_of(self, version: Announced) -> date:
        """Return the business date: explicit, else of the nominal or event time."""
        zone = self._rules[version.dataset_id].timezone or "UTC"
        return version.business_date or _date_in(zone, version)

    def _query(self, announced: Sequence[Announced], days: set[date]) -> list[Answer]:
        recording = self._recording
        answers = [
            self._query_dates(announced, days),
            recording.find(OF_RUN, {version.run_uuid for version in announced}),
        ]
        tags = {version.tag for version in announced if version.tag}
        dataset_ids = {version.dataset_id for version in announced}
        if tags:
            answers.append(recording.find(OF_TAG, dataset_ids, tags))
        if recording.careful:
            # A producer may have used a tag that floe would generate here for another date.
            answers.append(recording.find(OF_DATASET, dataset_ids))
        return answers

    def _query_dates(self, announced: Sequence[Announced], days: set[date]) -> Answer:
        recording = self._recording
        dataset_ids = {version.dataset_id for version in announced}
        return recording.find(OF_DATE, dataset_ids, {recording.encode_date(day) for day in days})

    def _stored(self, row: Row) -> Stored:
        version_id, dataset_id, tag, day, seq, state, at, run_uuid, partition = row
        return Stored(
            version_id,
            dataset_id,
            tag,
            None if day is None else self._recording.merging.decode_date(day),
            seq,
            state,
            self._recording.merging.decode_time(at),
            None if run_uuid is None else str(run_uuid),
            partition,
        )

    def _add(self, stored: Stored) -> None:
        if (stored.dataset_id, stored.tag) in self._by_tag:
            return
        self._by_tag[stored.dataset_id, stored.tag] = stored
        if stored.business_date is not None:
            self._by_date[stored.dataset_id, stored.business_date].append(stored)
        if stored.run_uuid is not None:
            self._by_run[stored.dataset_id, stored.run_uuid].append(stored)

    def _create(self, version: Announced) -> Stored:
        day, partition = self._dates[id(version)], self._partition_of(version)
        of_date = self._by_date[version.dataset_id, day]
        same = [old for old in of_date if old.partition == partition]
        key: date | str = partition or day
        seq = max((stored.seq for stored in same), default=0) + 1
        # A producer may have given its version a tag that looks like one of floe's.
        while not version.tag and (version.dataset_id, version_tag(key, seq)) in self._by_tag:
            seq += 1
        stored = Stored(
            version_id=None,
            dataset_id=version.dataset_id,
            tag=version.tag or version_tag(key, seq),
            business_date=day,
            seq=seq,
            state=self._first_state(version),
            at=version.at,
            run_uuid=version.run_uuid,
            partition=partition,
        )
        self._add(stored)
        return stored

    def _first_state(self, version: Announced) -> str:
        return WRITTEN if self._rules[version.dataset_id].needs_validation else READY

    def _confirm(self, version: Announced, known: Stored) -> Stored:
        """Complete a version that was read before its producer announced it."""
        day = self._dates[id(version)]
        known.state, known.at = self._first_state(version), version.at
        known.run_uuid = version.run_uuid
        known.business_date, known.partition = day, self._partition_of(version)
        of_date = self._by_date[version.dataset_id, day]
        if known not in of_date:
            of_date.append(known)
        return known

    def _update_states(self, announced: Sequence[Announced]) -> list[Stored]:
        """Make the newest version of each date READY; return the versions that change.

        Only dates that received a version are considered. For other dates another writer, such as
        one of floe's own runs, may have changed the READY version since. Each partition of a date
        has its own newest version.
        """
        changed = []
        # Not all versions of other dates are loaded.
        dates = {(version.dataset_id, self._dates[id(version)]) for version in announced}
        for versions in (self._by_date[key] for key in sorted(dates)):
            live = [stored for stored in versions if stored.state in LIVE]
            newest: dict[str | None, Stored] = {}
            for stored in sorted(live, key=lambda stored: stored.sort_key):
                newest[stored.partition] = stored
            for stored in live:
                state = READY if stored is newest[stored.partition] else SUPERSEDED
                if stored.state != state:
                    stored.state = state
                    if stored.version_id is not None:
                        changed.append(stored)
        return changed

    def _insert(self, new: Sequence[tuple[Announced, Stored]]) -> None:
        # There is no concurrent writer, so none of these can exist already.
        recording, rows = self._recording, []
        for version, stored in sorted(new, key=lambda pair: (pair[1].dataset_id, pair[1].tag)):
            stored.version_id = self._free_ids.pop()
            recording.versions[stored.dataset_id, version.run_uuid] = stored.version_id
            rows.append((stored.version_id, *_row(recording, version, stored)))
        recording.merge(NEW_VERSIONS, rows)

    def _rewrite(self, confirmed: Sequence[tuple[Announced, Stored]]) -> None:
        rows = [_row(self._recording, version, stored) for version, stored in confirmed]
        self._recording.merge(ANNOUNCED_VERSIONS, rows)

    def _announce(self, announced: Sequence[tuple[Announced, Stored]]) -> None:
        """Write the event of each version, and the change that triggers wait for."""
        recording, rows = self._recording, []
        for version, stored in announced:
            # A late version that is already superseded still counts as READY.
            kind = f"VERSION_{WRITTEN if stored.state == WRITTEN else READY}"
            event_type = IMPORTED if version.historical else kind
            actor = version.run_uuid
            rows.append(
                (stored.dataset_id, stored.version_id, event_type, actor, recording.written_now)
            )
            if not version.historical:
                recording.change(
                    kind,
                    dataset_id=stored.dataset_id,
                    version_id=stored.version_id,
                    run_id=recording.run_id(version.run_uuid),
                    business_date=stored.business_date,
                )
        recording.merge(DATASET_EVENTS, rows)


def _drift_row(recording: Recording, version: Announced, dates: dict[int, date]) -> Row:
    detail = {
        "version": version.tag,
        "business_date": dates[id(version)].isoformat(),
        "run": version.run_uuid,
    }
    seen = recording.encode_time(version.at)
    text = msgspec.json.encode(detail).decode()
    return (FOREIGN_VERSION, version.dataset_id, version.process_id, OPEN, seen, seen, text)


def _row(recording: Recording, version: Announced, stored: Stored) -> Row:
    return (
        stored.dataset_id,
        stored.tag,
        recording.encode_date(stored.business_date),
        stored.seq,
        stored.state,
        version.path,
        version.rows,
        version.size,
        version.checksum,
        version.schema_hash,
        stored.run_uuid,
        recording.encode_time(stored.at),
        "N",
        version.claim.metadata,
        stored.partition,
    )
