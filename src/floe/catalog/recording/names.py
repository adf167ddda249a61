"""From names to numbers: find the processes and datasets of events, and make those that are new."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from floe.catalog.processes import ACTIVE, TRIGGER_PROCESS
from floe.catalog.recording.merges import DATASETS, PROCESSES
from floe.catalog.recording.scope import Recording
from floe.catalog.stores.merging import Answer, Lookup, Row
from floe.spec.identity import DatasetId, process_of_key

Name = tuple[str, str]
OBSERVED_BY = "events"
PROCESS_NUMBERS = Lookup("process", ("process_key", "process_id"), by=("process_key",))
DATASET_NUMBERS = Lookup("dataset", ("full_name", "dataset_id"), by=("full_name",))
OWNED_NAMES = Lookup("dataset", ("full_name", "project_id", "curated"), by=("full_name",))
ALIASES = Lookup("dataset_alias", ("namespace", "name", "dataset_id"), by=("namespace", "name"))


class Asked(NamedTuple):
    """Questions that are out: of processes that were made, and of datasets."""

    processes: Answer
    datasets: "_Asked | None"


def ask_names(recording: Recording) -> Asked:
    """Ask for the numbers of the processes and datasets of events; make those that are new."""
    processes = _put_processes(recording)
    names = {(one.namespace, one.name) for claim in recording.claims for one in claim.datasets}
    asked = Asked(processes, _ask_datasets(recording, names))
    if asked.datasets is not None:
        recording.start()
    return asked


def learn_names(recording: Recording, asked: Asked) -> None:
    """Make sure that the process and the datasets of every event have numbers."""
    _learn_processes(recording, asked.processes)
    _learn_datasets(recording, asked.datasets)


def resolve_datasets(recording: Recording, names: set[Name]) -> None:
    """Make sure that every dataset, by whichever of its names, has a number."""
    _learn_datasets(recording, _ask_datasets(recording, names))


def _put_processes(recording: Recording) -> Answer:
    known = recording.memory.processes
    keys = {claim.process_key for claim in recording.claims if claim.process_key}
    return recording.merge_returning(
        PROCESSES,
        [
            (key, process_of_key(key).name[:300], TRIGGER_PROCESS, ACTIVE, recording.written_now)
            for key in sorted(keys)
            if key not in known
        ],
    )


def _learn_processes(recording: Recording, made: Answer) -> None:
    known = recording.memory.processes
    for key, number in made.fetchall():
        known.put(key, number)
    # Those that were there already do not come back, and are looked up.
    keys = {claim.process_key for claim in recording.claims if claim.process_key}
    there = [key for key in keys if key not in known]
    if there:
        for key, number in recording.find(PROCESS_NUMBERS, there).fetchall():
            known.put(key, number)


class _Asked(NamedTuple):
    """Names without a number, the two places where they may have one, and those made now."""

    by_full_name: dict[str, list[Name]]
    by_stored_name: dict[Name, list[Name]]
    datasets: Answer
    aliases: Answer
    made: Answer


def _ask_datasets(recording: Recording, names: set[Name]) -> _Asked | None:
    missing = sorted(name for name in names if name not in recording.memory.datasets)
    stored_names = _without_dates(recording, missing)
    if not stored_names:
        return None
    # `a/b` + `c` and `a` + `b/c` are one full name, and so one dataset.
    by_full_name: defaultdict[str, list[Name]] = defaultdict(list)
    by_stored_name: defaultdict[Name, list[Name]] = defaultdict(list)
    for name, stored in stored_names.items():
        by_full_name[DatasetId(*stored).full_name].append(name)
        by_stored_name[stored].append(name)
    namespaces, plain = {one for one, _ in by_stored_name}, {one for _, one in by_stored_name}
    return _Asked(
        by_full_name,
        by_stored_name,
        recording.find(DATASET_NUMBERS, list(by_full_name)),
        recording.find(ALIASES, namespaces, plain),
        _make(recording, by_stored_name),
    )


def _without_dates(recording: Recording, missing: Sequence[Name]) -> dict[Name, Name]:
    """Map each name to the one that its dataset is stored under: `fx_20260901` to `fx_{date}`.

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
            recording.memory.undated.put(full_names[full_name], True)
    for name in dated:
        found = recording.dated(*name)
        if found is not None:
            stored_names[name] = (name[0], found.name)
    for namespace, plain, number in aliases.fetchall():
        if (namespace, plain) in stored_names:
            recording.memory.datasets.put((namespace, plain), number)
            del stored_names[namespace, plain]
    return stored_names


def _learn_datasets(recording: Recording, asked: _Asked | None) -> None:
    if asked is None:
        return
    known, by_full_name = recording.memory.datasets, asked.by_full_name
    _learn(recording, by_full_name, asked.datasets.fetchall())
    for namespace, plain, number in asked.aliases.fetchall():
        for name in asked.by_stored_name.get((namespace, plain), ()):
            known.put(name, number)
    made = asked.made.fetchall()
    _learn(recording, by_full_name, made)
    recording.made |= {number for _, number in made}
    recording.reworded |= recording.made
    # Another writer made some while this one asked.
    late = [full for full, same in by_full_name.items() if same[0] not in known]
    if late:
        _learn(recording, by_full_name, recording.find(DATASET_NUMBERS, late).fetchall())


def _make(recording: Recording, stored_names: Iterable[Name]) -> Answer:
    by_full_name = {DatasetId(*name).full_name: name for name in sorted(stored_names, reverse=True)}
    rows = [
        (*by_full_name[full_name], full_name, ACTIVE, "N", OBSERVED_BY, recording.written_now)
        for full_name in sorted(by_full_name)
    ]
    return recording.merge_returning(DATASETS, rows)


def _learn(recording: Recording, by_full_name: dict[str, list[Name]], rows: Sequence[Row]) -> None:
    for full_name, number in rows:
        for name in by_full_name[full_name]:
            recording.memory.datasets.put(name, number)
