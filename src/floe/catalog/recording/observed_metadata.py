"""Record metadata from events: edges, schemas, column lineage and facets."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from floe.catalog.datasets import ACTIVE, DEPRECATED
from floe.catalog.edges import CONSUMES, DATASET, OBSERVED, PROCESS, PRODUCES
from floe.catalog.recording.facets import (
    ColumnSource,
    Documentation,
    JobType,
    LifecycleStateChange,
    Ownership,
    metadata_text,
    read_columns,
    read_facet,
    read_schema,
)
from floe.catalog.recording.merge_rules import (
    COLUMN_EDGES,
    COLUMN_SIGHTINGS,
    EDGES,
    FACETS,
    FIRST_COLUMN_EDGES,
    SCHEMA_SIGHTINGS,
    SCHEMAS,
)
from floe.catalog.recording.name_ids import resolve_datasets
from floe.catalog.recording.transaction import Recording, hour_of, start_of, widen
from floe.catalog.schemas import hash_schema
from floe.catalog.stores.merging import Answer, Assign, Row, Written

# Short, because it is in every row and only distinguishes lineages of one process and dataset.
LINEAGE_BYTES = 8
Spans = dict[Any, tuple[Any, Any]]
# Process id, id of the dataset that it writes, hash of the column lineage.
Lineage = tuple[int, int, str]


def record_edges(recording: Recording) -> None:
    """Write the edges between processes and datasets.

    Sightings are kept to the hour, so that a busy edge is written once an hour.
    """
    spans: Spans = {}
    for claim in recording.claims:
        if claim.process_key is None:
            continue
        process_id, hour = recording.process_id(claim), hour_of(claim.at)
        for dataset in claim.datasets:
            if dataset.reads or dataset.writes:
                dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
                widen(spans, _edge(process_id, dataset_id, writes=dataset.writes), hour)
    _write_spans(recording, spans)


def _edge(process_id: int, dataset_id: int, *, writes: bool) -> tuple[Any, ...]:
    if writes:
        return (PROCESS, process_id, DATASET, dataset_id, PRODUCES, OBSERVED)
    return (DATASET, dataset_id, PROCESS, process_id, CONSUMES, OBSERVED)


def _write_spans(recording: Recording, spans: Spans) -> None:
    known, now, rows = recording.cache.edges, recording.written_now, []
    for edge in sorted(spans):
        first, last = spans[edge]
        seen = known.get(edge)
        if seen is not None and seen[0] <= first and seen[1] >= last:
            continue
        known.put(edge, (min(first, seen[0]), max(last, seen[1])) if seen else (first, last))
        times = (recording.encode_time(start_of(first)), recording.encode_time(start_of(last)))
        rows.append((*edge, *times, now))
    recording.merge(EDGES, rows)


@dataclass
class NewMetadata:
    """Schemas and column lineages that are not cached; lineages by raw bytes."""

    schemas: dict[str, list[Row]] = field(default_factory=dict)
    lineages: dict[bytes, list[ColumnSource]] = field(default_factory=dict)


def read_new_metadata(recording: Recording) -> NewMetadata:
    """Decode new schemas and lineages while the store looks up ids."""
    new, cache = NewMetadata(), recording.cache
    for claim in recording.claims:
        process_id = cache.processes.get(claim.process_key) if claim.process_key else None
        for dataset in claim.datasets:
            if dataset.schema is not None:
                _read_schema(recording, dataset.schema, new)
            columns = dataset.columns
            if columns is None or claim.process_key is None or columns in new.lineages:
                continue
            dataset_id = cache.datasets.get((dataset.namespace, dataset.name))
            if (process_id, dataset_id, _lineage_hash(recording, columns)) not in cache.columns:
                new.lineages[columns] = read_columns(columns)
    return new


def _read_schema(recording: Recording, raw: bytes, new: NewMetadata) -> None:
    digest = recording.digest(raw)
    if digest in recording.cache.schemas:
        return
    columns = read_schema(raw)
    schema_hash = hash_schema(columns) if columns else ""
    recording.cache.schemas.put(digest, schema_hash)
    if columns:
        new.schemas[schema_hash] = [
            (schema_hash, order, column.name, column.type, "Y", metadata_text(column))
            for order, column in enumerate(columns)
        ]


def _lineage_hash(recording: Recording, raw: bytes) -> str:
    return recording.digest(raw)[:LINEAGE_BYTES].hex()


def record_schemas(recording: Recording, new: NewMetadata) -> None:
    """Write the schemas that datasets were seen with."""
    spans: Spans = {}
    for claim in recording.claims:
        for dataset in claim.datasets:
            schema_hash = recording.schema_hash(dataset)
            if schema_hash:
                dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
                widen(spans, (dataset_id, schema_hash), claim.at)
    schemas = new.schemas
    recording.merge(SCHEMAS, [row for key in sorted(schemas) for row in schemas[key]])
    rows = []
    for (dataset_id, schema_hash), (first, last) in sorted(spans.items()):
        if (dataset_id, schema_hash) not in recording.cache.sighted:
            recording.cache.sighted.put((dataset_id, schema_hash), True)
            recording.to_index.add(dataset_id)
        rows.append(
            (dataset_id, schema_hash, recording.encode_time(first), recording.encode_time(last))
        )
    recording.merge(SCHEMA_SIGHTINGS, rows)


def record_columns(recording: Recording, metadata: NewMetadata) -> None:
    """Write column edges, once per distinct lineage of a process and dataset."""
    spans: Spans = {}
    new: dict[Lineage, list[ColumnSource]] = {}
    for claim in recording.claims:
        if claim.process_key is None:
            continue
        process_id = recording.process_id(claim)
        for dataset in claim.datasets:
            if dataset.columns is None:
                continue
            dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
            key = (process_id, dataset_id, _lineage_hash(recording, dataset.columns))
            widen(spans, key, claim.at)
            if key not in recording.cache.columns and dataset.columns in metadata.lineages:
                new[key] = metadata.lineages[dataset.columns]
    _write_columns(recording, new)
    rows = [
        (*key, recording.encode_time(first), recording.encode_time(last))
        for key, (first, last) in sorted(spans.items())
    ]
    recording.merge(COLUMN_SIGHTINGS, rows)


def _write_columns(recording: Recording, new: dict[Lineage, list[ColumnSource]]) -> None:
    names = {source[:2] for sources in new.values() for source in sources}
    resolve_datasets(recording, names)
    dataset_ids = {name: recording.dataset_id(*name) for name in names}
    first: list[Row] = []
    rows: list[Row] = []
    # Sorted, so that two writers of the same lineage cannot deadlock.
    for key in sorted(new):
        process_id, target_id, lineage_hash = key
        recording.cache.columns.put(key, True)
        gathered = first if target_id in recording.new_datasets else rows
        for namespace, name, column, target, kind in new[key]:
            source_id = dataset_ids[namespace, name]
            gathered.append((target_id, target, source_id, column, process_id, kind, lineage_hash))
    # Two names of one dataset can produce the same edge twice.
    recording.merge(FIRST_COLUMN_EDGES, list(dict.fromkeys(first)))
    recording.merge(COLUMN_EDGES, rows)


Owner = tuple[str, int]
# Declared and curated values take precedence over those from events.
UNMANAGED = {DATASET: "project_id IS NULL AND curated = 'N'", PROCESS: "project_id IS NULL"}
INDEXED_FACETS = frozenset({"documentation", "ownership", "jobType", "lifecycleStateChange"})


@dataclass
class RecordedFacets:
    """Facets that were written, and the column updates that wait for the result."""

    written: Answer
    postponed: list[tuple[Assign, list[tuple[int, str]]]] = field(default_factory=list)


def record_facets(recording: Recording) -> RecordedFacets:
    """Store the newest facet of each kind, and copy it to uncurated columns."""
    newest: dict[tuple[str, int, str], tuple[Any, ...]] = {}
    for claim in recording.claims:
        if claim.process_facets:
            _gather(newest, (PROCESS, recording.process_id(claim)), claim.process_facets, claim.at)
        for dataset in claim.datasets:
            if dataset.facets:
                dataset_id = recording.dataset_id(dataset.namespace, dataset.name)
                _gather(newest, (DATASET, dataset_id), dataset.facets, claim.at)
    rows = [
        (*key, digest, recording.encode_time(at), body)
        for key, (at, digest, body) in sorted(newest.items())
    ]
    facets = RecordedFacets(recording.merge_returning(FACETS, rows))
    for assign, values in _assignments(rows):
        if not recording.merging.assign_written(
            recording.connection, assign, values, facets.written
        ):
            facets.postponed.append((assign, values))
    return facets


def _assignments(rows: Iterable[Row]) -> Iterable[tuple[Assign, list[tuple[int, str]]]]:
    values: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for owner_type, owner_id, facet, *_, body in rows:
        for column, value in _columns(owner_type, facet, body).items():
            values.setdefault((owner_type, facet, column), []).append((owner_id, value))
    for (owner_type, facet, column), pairs in values.items():
        table = owner_type.lower()
        written = Written("owner_id", (("owner_type", owner_type), ("facet", facet)))
        yield Assign(table, f"{table}_id", column, UNMANAGED[owner_type], written), pairs


def apply_postponed(recording: Recording, facets: RecordedFacets) -> None:
    """Apply the column updates that had to wait for the written facets."""
    for assign, values in facets.postponed:
        assert assign.written is not None
        written_ids = assign.written.ids(FACETS.returning, facets.written.fetchall())
        rows = [(owner_id, value) for owner_id, value in values if owner_id in written_ids]
        recording.merging.assign(recording.connection, assign, rows)


def list_datasets_to_index(facets: RecordedFacets) -> set[int]:
    """List the datasets with new facets that the search indexes."""
    return {
        owner_id
        for owner_type, owner_id, facet in facets.written.fetchall()
        if owner_type == DATASET and facet in INDEXED_FACETS
    }


def _gather(
    newest: dict[tuple[str, int, str], tuple[Any, ...]],
    owner: Owner,
    facets: Mapping[str, str],
    at: Any,
) -> None:
    for facet, body in facets.items():
        digest = hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        known = newest.get((*owner, facet))
        if known is None or (at, digest) > known[:2]:
            newest[(*owner, facet)] = (at, digest, body)


def _columns(owner_type: str, facet: str, text: str) -> dict[str, str]:
    """Return the columns that a facet fills, with their values."""
    if facet == "documentation":
        return _filled("description", read_facet(text, Documentation).description, 100_000)
    if facet == "ownership":
        column = "owner_team" if owner_type == DATASET else "team"
        return _filled(column, _owner(read_facet(text, Ownership)), 200)
    if facet == "jobType":
        return _filled("technology", read_facet(text, JobType).integration, 50)
    if facet == "lifecycleStateChange":
        change = read_facet(text, LifecycleStateChange).change
        return _filled("status", change and (DEPRECATED if change == "DROP" else ACTIVE), 20)
    return {}


def _filled(column: str, value: str, longest: int) -> dict[str, str]:
    return {column: value[:longest]} if value else {}


def _owner(facet: Ownership) -> str:
    # Clients often write owners as team:credit-risk.
    return next((owner.name.removeprefix("team:") for owner in facet.owners if owner.name), "")
