"""Record claims: one transaction per group, set-based statements, any order."""

import logging
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import OperationalError

from floe.catalog.database import Catalog
from floe.catalog.recording.claims import EventClaim, Seen
from floe.catalog.recording.merge_rules import EVENTS, EVENTS_WITHOUT_RESULT
from floe.catalog.recording.name_ids import cache_names, query_names
from floe.catalog.recording.observed_metadata import (
    RecordedFacets,
    apply_postponed,
    list_datasets_to_index,
    read_new_metadata,
    record_columns,
    record_edges,
    record_facets,
    record_schemas,
)
from floe.catalog.recording.observed_runs import (
    mark_lost,
    query_lost,
    record_assertions,
    record_inputs,
    record_runs,
    record_steps,
    reject_own_runs,
)
from floe.catalog.recording.stored_versions import query_rules, record_versions
from floe.catalog.recording.symlinks import link_names
from floe.catalog.recording.transaction import CHANGE_COLUMNS, NewEvents, RecorderCache, Recording
from floe.catalog.stores import Store, merging_for
from floe.catalog.stores.merging import Answer, Fetched
from floe.spec.dates import DEFAULT_RULES, DateRules


class Recorder:
    """Writes claims; caches names and schemas so that known ones cost no statement."""

    def __init__(
        self, store: Store, dates: DateRules = DEFAULT_RULES, *, own: bool = False
    ) -> None:
        """Create a recorder for floe's own reports (`own`) or for events from outside.

        The caller decides: nothing in an event can make it one of floe's own.
        """
        self._store, self._dates, self._own = store, dates, own
        self._merging = merging_for(store.name)
        self.cache = RecorderCache()
        self.days = EventDays()
        self._to_index: set[int] = set()
        self._connection: Connection | None = None
        self._untidy = False
        # Also check for rare conflicts (set on retry).
        self.careful = False

    def connection(self, engine: Engine) -> Connection:
        """Return the recorder's own connection; checking one out per group would be slow."""
        if self._connection is None:
            self._connection = engine.connect().execution_options(floe_writing=True)
            # If this fails, the caller calls reset(), which closes the connection.
            self._merging.prepare(self._connection)
        return self._connection

    def reset(self) -> None:
        """Clear the cache and close the connection, because either may be invalid."""
        self.cache.clear()
        self.close()

    def close(self) -> None:
        """Close the connection. Its settings suit nobody else, so it leaves the pool."""
        if self._connection is not None:
            self._connection.invalidate()
            self._connection.close()
            self._connection = None

    def tidy(self) -> None:
        """Do the store's postponed maintenance while no events come in."""
        if self._connection is not None and self._untidy:
            self._merging.tidy(self._connection)
            self._untidy = False

    def record(self, connection: Connection, claims: Sequence[EventClaim], now: datetime) -> None:
        """Write a group of claims. The caller commits the transaction, and then the cache.

        Stores that pipeline statements send the commit together with the last one.
        """
        self._untidy = True
        link_names(connection, self._store, self.cache, claims, self._dates)
        recording = Recording(
            connection,
            self._merging,
            self.cache,
            now,
            _distinct(claims),
            careful=self.careful,
            dates=self._dates,
            own=self._own,
        )
        with self._merging.pipeline(connection):
            facets = _record_all(recording)
        # Indexing costs more than the rest of a new dataset, so it waits until no events come in.
        # A dataset whose transaction was rolled back is skipped then.
        self._to_index |= recording.to_index | list_datasets_to_index(facets)

    def take_datasets_to_index(self) -> set[int]:
        """Return the datasets to index for the search, and clear the list."""
        dataset_ids, self._to_index = self._to_index, set()
        return dataset_ids


def _distinct(claims: Sequence[EventClaim]) -> list[EventClaim]:
    """Return each event once; a live one wins over the same one as history."""
    by_hash: dict[str, EventClaim] = {}
    for claim in claims:
        known = by_hash.setdefault(claim.hash, claim)
        if known.historical and not claim.historical:
            by_hash[claim.hash] = claim
    return list(by_hash.values())


def _record_all(recording: Recording) -> RecordedFacets:
    """Write everything, and fetch each result as late as possible.

    An event that is stored already is recorded again without effect: every rule is idempotent.
    """
    recording.query_epoch()
    new_events = NewEvents(recording, _record_events(recording))
    queries = query_names(recording)
    new_metadata = read_new_metadata(recording)
    cache_names(recording, queries)
    # The slowest writes come first, so that the store works on them in parallel.
    record_columns(recording, new_metadata)
    record_schemas(recording, new_metadata)
    record_runs(recording)
    record_steps(recording)
    record_edges(recording)
    facets = record_facets(recording)
    rules = query_rules(recording)
    maybe_lost = query_lost(recording)
    record_inputs(recording)
    record_versions(recording, rules)
    reject_own_runs(recording)
    recording.check_names()
    mark_lost(recording, maybe_lost)
    apply_postponed(recording, facets)
    record_assertions(recording, new_events)
    _record_failures(recording, new_events)
    recording.merging.append_changes(recording.connection, CHANGE_COLUMNS, recording.changes)
    return facets


def _record_events(recording: Recording) -> Answer:
    """Store the events; the result lists the new ones, if any claim needs to know."""
    rows = [
        (
            recording.encode_date(claim.day),
            claim.hash,
            recording.encode_time(claim.at),
            claim.type,
            claim.run.run_uuid if claim.run else None,
            claim.process_key,
            claim.payload,
            claim.codec,
            "Y" if claim.historical else "N",
            recording.encode_time(claim.received_at),
        )
        for claim in recording.claims
    ]
    if any(_takes_effect_once(claim) for claim in recording.claims):
        return recording.merge_returning(EVENTS, rows)
    recording.merge(EVENTS_WITHOUT_RESULT, rows)
    return Fetched([])


def _takes_effect_once(claim: EventClaim) -> bool:
    """Tell whether a repeated event must not have its effect again."""
    return _has_failed(claim) or any(dataset.assertions for dataset in claim.datasets)


def _has_failed(claim: EventClaim) -> bool:
    run = claim.run
    return run is not None and not claim.historical and bool(run.seen & Seen.FAILED)


def _record_failures(recording: Recording, new_events: NewEvents) -> None:
    """Queue a RUN_FAILED change for monitors, once per event."""
    # Most groups have no failures, so they do not wait for the result.
    for claim in filter(_has_failed, recording.claims):
        run = claim.run
        if run is not None and new_events.is_live(claim):
            recording.change(
                "RUN_FAILED",
                process_id=recording.process_id(claim),
                run_id=recording.run_id(run.run_uuid),
                business_date=run.business_date,
            )


log = logging.getLogger(__name__)
AHEAD = timedelta(days=7)
# Days further away go to the default partition: a wrong clock must not create many tables.
MAX_DAYS_BACK, MAX_DAYS_AHEAD = timedelta(days=400), timedelta(days=31)


class EventDays:
    """Creates the partitions of event days ahead of time, and remembers which exist."""

    def __init__(self) -> None:
        self._ready: set[date] = set()

    def prepare(self, catalog: Catalog, days: Iterable[date], today: date) -> None:
        """Create the partitions of these days; around today, of the week ahead as well."""
        for day in sorted(set(days) - self._ready):
            if today - MAX_DAYS_BACK <= day <= today + MAX_DAYS_AHEAD:
                last = today + AHEAD if abs(day - today) <= timedelta(days=1) else day
                self._create_partitions(catalog, day, max(day, last))

    def _create_partitions(self, catalog: Catalog, first: date, last: date) -> None:
        try:
            with catalog.writing() as session:
                catalog.store.prepare_event_days(session, first, last)
        except OperationalError as error:
            # Another session holds the table. The events go to the default partition, and the next
            # group that gets the lock moves them.
            log.warning("The event partition of %s was not created yet: %s", first, error.orig)
            return
        self._ready |= {first + timedelta(days) for days in range((last - first).days + 1)}
