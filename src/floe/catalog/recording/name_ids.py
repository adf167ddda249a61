"""Resolve the names of processes and datasets to ids; create those that are new."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from floe.catalog.processes import ACTIVE, TRIGGER_PROCESS
from floe.catalog.recording.merge_rules import DATASETS, PROCESSES
from floe.catalog.recording.transaction import Recording
from floe.catalog.stores.merging import Answer, Lookup, Row
from floe.spec.identity import DatasetId, process_of_key

Name = tuple[str, str]
OBSERVED_BY = "events"
PROCESS_IDS = Lookup("process", ("process_key", "process_id"), by=("process_key",))
DATASET_IDS = Lookup("dataset", ("full_name", "dataset_id"), by=("full_name",))
OWNED_NAMES = Lookup("dataset", ("full_name", "project_id", "curated"), by=("full_name",))
ALIASES = Lookup("dataset_alias", ("namespace", "name", "dataset_id"), by=("namespace", "name"))


class NameQueries(NamedTuple):
    """Pending queries for the ids of processes and datasets."""

    processes: Answer
    datasets: "_DatasetQueries | None"


def query_names(recording: Recording) -> NameQueries:
    """Query the ids of processes and datasets; create those that are new."""
    processes = _insert_processes(recording)
    names = {
        (dataset.namespace, dataset.name)
        for claim in recording.claims
        for dataset in claim.datasets
    }
    queries = NameQueries(processes, _query_datasets(recording, names))
    if queries.datasets is not None:
        recording.start()
    return queries


def cache_names(recording: Recording, queries: NameQueries) -> None:
    """Cache the id of the process and of every dataset of each event."""
    _cache_processes(recording, queries.processes)
    _cache_datasets(recording, queries.datasets)


def resolve_datasets(recording: Recording, names: set[Name]) -> None:
    """Cache the id of every dataset, by any of its names; create those that are new."""
    _cache_datasets(recording, _query_datasets(recording, names))


def _insert_processes(recording: Recording) -> Answer:
    known = recording.cache.processes
    keys = {claim.process_key for claim in recording.claims if claim.process_key}
    return recording.merge_returning(
        PROCESSES,
        [
            (key, process_of_key(key).name[:300], TRIGGER_PROCESS, ACTIVE, recording.written_now)
            for key in sorted(keys)
            if key not in known
        ],
    )


def _cache_processes(recording: Recording, inserted: Answer) -> None:
    known = recording.cache.processes
    for key, process_id in inserted.fetchall():
        known.put(key, process_id)
    # The insert does not return processes that existed already: look them up.
    keys = {claim.process_key for claim in recording.claims if claim.process_key}
    existing = [key for key in keys if key not in known]
    if existing:
        for key, process_id in recording.find(PROCESS_IDS, existing).fetchall():
            known.put(key, process_id)


class _DatasetQueries(NamedTuple):
    """Names without a cached id, and the pending queries for them."""

    by_full_name: dict[str, list[Name]]
    by_stored_name: dict[Name, list[Name]]
    datasets: Answer
    aliases: Answer
    inserted: Answer


def _query_datasets(recording: Recording, names: set[Name]) -> _DatasetQueries | None:
    missing = sorted(name for name in names if name not in recording.cache.datasets)
    stored_names = _without_dates(recording, missing)
    if not stored_names:
        return None
    # `a/b` + `c` and `a` + `b/c` have the same full name, and so are one dataset.
    by_full_name: defaultdict[str, list[Name]] = defaultdict(list)
    by_stored_name: defaultdict[Name, list[Name]] = defaultdict(list)
    for name, stored in stored_names.items():
        by_full_name[DatasetId(*stored).full_name].append(name)
        by_stored_name[stored].append(name)
    namespaces = {namespace for namespace, _ in by_stored_name}
    plain_names = {name for _, name in by_stored_name}
    return _DatasetQueries(
        by_full_name,
        by_stored_name,
        recording.find(DATASET_IDS, list(by_full_name)),
        recording.find(ALIASES, namespaces, plain_names),
        _insert_datasets(recording, by_stored_name),
    )


def _without_dates(recording: Recording, missing: Sequence[Name]) -> dict[Name, Name]:
    """Map names to the names of their datasets: `fx_20260901` to `fx_{date}`.

    A name with a date that is declared, curated or an alias keeps its dataset.
    """
    stored_names = {name: name for name in missing}
    dated = [name for name in missing if recording.dates.fold(name[1])]
    if not dated:
        return stored_names
    full_names = {DatasetId(*name).full_name: name for name in dated}
    owned = recording.find(OWNED_NAMES, list(full_names))
    aliases = recording.find(ALIASES, {name[0] for name in dated}, {name[1] for name in dated})
    for full_name, project_id, curated in owned.fetchall():
        if project_id is not None or curated == "Y":
            recording.cache.undated.put(full_names[full_name], True)
    for name in dated:
        parsed = recording.dated(*name)
        if parsed is not None:
            stored_names[name] = (name[0], parsed.name)
    for namespace, plain_name, dataset_id in aliases.fetchall():
        if (namespace, plain_name) in stored_names:
            recording.cache.datasets.put((namespace, plain_name), dataset_id)
            del stored_names[namespace, plain_name]
    return stored_names


def _cache_datasets(recording: Recording, queries: _DatasetQueries | None) -> None:
    if queries is None:
        return
    known, by_full_name = recording.cache.datasets, queries.by_full_name
    _cache_ids(recording, by_full_name, queries.datasets.fetchall())
    for namespace, plain_name, dataset_id in queries.aliases.fetchall():
        for name in queries.by_stored_name.get((namespace, plain_name), ()):
            known.put(name, dataset_id)
    inserted = queries.inserted.fetchall()
    _cache_ids(recording, by_full_name, inserted)
    recording.new_datasets |= {dataset_id for _, dataset_id in inserted}
    recording.to_index |= recording.new_datasets
    # Another writer created these in the meantime.
    missing = [full_name for full_name, names in by_full_name.items() if names[0] not in known]
    if missing:
        _cache_ids(recording, by_full_name, recording.find(DATASET_IDS, missing).fetchall())


def _insert_datasets(recording: Recording, stored_names: Iterable[Name]) -> Answer:
    by_full_name = {DatasetId(*name).full_name: name for name in sorted(stored_names, reverse=True)}
    rows = [
        (*by_full_name[full_name], full_name, ACTIVE, "N", OBSERVED_BY, recording.written_now)
        for full_name in sorted(by_full_name)
    ]
    return recording.merge_returning(DATASETS, rows)


def _cache_ids(
    recording: Recording, by_full_name: dict[str, list[Name]], rows: Sequence[Row]
) -> None:
    for full_name, dataset_id in rows:
        for name in by_full_name[full_name]:
            recording.cache.datasets.put(name, dataset_id)
