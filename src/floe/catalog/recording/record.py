"""Record what events claim: one transaction for a group, set-based statements, any order."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import Connection, Engine

from floe.catalog.recording.assertions import record_assertions
from floe.catalog.recording.claims import EventClaim, Seen
from floe.catalog.recording.days import EventDays
from floe.catalog.recording.inputs import record_inputs
from floe.catalog.recording.kept import Kept
from floe.catalog.recording.memory import Memory
from floe.catalog.recording.merges import EVENTS, EVENTS_KEPT
from floe.catalog.recording.names import ask_names, learn_names
from floe.catalog.recording.observed import (
    Shown,
    list_reworded,
    record_facets,
    show_postponed,
)
from floe.catalog.recording.runs import (
    ask_lost,
    mark_lost,
    record_runs,
    record_steps,
    refuse_own_runs,
)
from floe.catalog.recording.scope import CHANGE_COLUMNS, Recording
from floe.catalog.recording.sightings import (
    read_descriptions,
    record_columns,
    record_edges,
    record_schemas,
)
from floe.catalog.recording.symlinks import link_names
from floe.catalog.recording.versions import ask_rules, record_versions
from floe.catalog.stores import Store
from floe.catalog.stores.merging import Answer, Fetched, merging_for
from floe.spec.dates import DEFAULT_RULES, DateRules


class Recorder:
    """Writes claims, and remembers names and schemas so that known ones cost nothing."""

    def __init__(
        self, store: Store, dates: DateRules = DEFAULT_RULES, *, own: bool = False
    ) -> None:
        """Write claims as floe's own reports where `own` is set, else as those of others.

        Whoever opens a recorder decides: nothing in an event can make it floe's own.
        """
        self._store, self._dates, self._own = store, dates, own
        self._merging = merging_for(store.name)
        self.memory = Memory()
        self.days = EventDays()
        self._reworded: set[int] = set()
        self._connection: Connection | None = None
        self._untidy = False
        # Set for a group that went wrong before: what is hardly ever so has to be looked for.
        self.careful = False

    def connection(self, engine: Engine) -> Connection:
        """The recorder's own connection: to take one out of the pool costs a group's start."""
        if self._connection is None:
            self._connection = engine.connect().execution_options(floe_writing=True)
            # If this fails, whoever asked starts anew, and the connection is left then.
            self._merging.prepare(self._connection)
        return self._connection

    def start_anew(self) -> None:
        """Forget what was known and leave the connection, because one of them may be wrong."""
        self.memory.forget()
        self.close()

    def close(self) -> None:
        """End the connection, which is of no use to others as it was prepared."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def tidy(self) -> None:
        """Use a quiet moment for what the store has put off."""
        if self._connection is not None and self._untidy:
            self._merging.tidy(self._connection)
            self._untidy = False

    def record(self, connection: Connection, claims: Sequence[EventClaim], now: datetime) -> None:
        """Write a group of claims. The caller commits, and then says so to the memory.

        Where the store can, the commit went out with the last statement, and is there by then.
        """
        self._untidy = True
        link_names(connection, self._store, self.memory, claims, self._dates)
        recording = Recording(
            connection,
            self._merging,
            self.memory,
            now,
            _distinct(claims),
            careful=self.careful,
            dates=self._dates,
            own=self._own,
        )
        with self._merging.together(connection):
            shown = _record_all(recording)
        # Indexing costs more than the rest of a new dataset, so it is left for a quiet moment.
        # One that came to nothing with its transaction is found out then.
        self._reworded |= recording.reworded | list_reworded(shown)

    def take_reworded(self) -> set[int]:
        """Hand over the datasets whose words for the search have changed."""
        reworded, self._reworded = self._reworded, set()
        return reworded


def _distinct(claims: Sequence[EventClaim]) -> list[EventClaim]:
    """Each event once; one that is news is not taken for history."""
    by_hash: dict[str, EventClaim] = {}
    for claim in claims:
        known = by_hash.setdefault(claim.hash, claim)
        if known.historical and not claim.historical:
            by_hash[claim.hash] = claim
    return list(by_hash.values())


def _record_all(recording: Recording) -> Shown:
    """Write everything, and ask for each answer as late as it can be used.

    An event that was there already is recorded again, to no effect: every rule is idempotent.
    """
    recording.ask_epoch()
    kept = Kept(recording, _record_events(recording))
    asked = ask_names(recording)
    described = read_descriptions(recording)
    learn_names(recording, asked)
    # What the store takes longest for comes first, so that it does so beside the rest.
    record_columns(recording, described)
    record_schemas(recording, described)
    record_runs(recording)
    record_steps(recording)
    record_edges(recording)
    shown = record_facets(recording)
    rules = ask_rules(recording)
    maybe_lost = ask_lost(recording)
    record_inputs(recording)
    record_versions(recording, rules)
    refuse_own_runs(recording)
    recording.check_names()
    mark_lost(recording, maybe_lost)
    show_postponed(recording, shown)
    record_assertions(recording, kept)
    _record_failures(recording, kept)
    recording.merging.append_changes(recording.connection, CHANGE_COLUMNS, recording.changes)
    return shown


def _record_events(recording: Recording) -> Answer:
    """Keep the events themselves; the answer has those that are news, where anybody asks."""
    rows = [
        (
            recording.day(claim.day),
            claim.hash,
            recording.moment(claim.at),
            claim.type,
            claim.run.run_uuid if claim.run else None,
            claim.process_key,
            claim.payload,
            claim.codec,
            "Y" if claim.historical else "N",
            recording.moment(claim.received_at),
        )
        for claim in recording.claims
    ]
    if any(_is_told_once(claim) for claim in recording.claims):
        return recording.merge_returning(EVENTS, rows)
    recording.merge(EVENTS_KEPT, rows)
    return Fetched([])


def _is_told_once(claim: EventClaim) -> bool:
    """Whether an event leaves behind what the same one must not leave again."""
    return _has_failed(claim) or any(dataset.assertions for dataset in claim.datasets)


def _has_failed(claim: EventClaim) -> bool:
    run = claim.run
    return run is not None and not claim.historical and bool(run.seen & Seen.FAILED)


def _record_failures(recording: Recording, kept: Kept) -> None:
    """A run that failed is a change that monitors wait for, each event of it once."""
    # Most groups have none, and so never wait for the answer.
    for claim in filter(_has_failed, recording.claims):
        run = claim.run
        if run is not None and kept.is_news(claim):
            recording.change(
                "RUN_FAILED",
                process_id=recording.process_id(claim),
                run_id=recording.run_id(run.run_uuid),
                business_date=run.business_date,
            )
