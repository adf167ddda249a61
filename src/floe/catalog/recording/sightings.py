"""Sightings: which edges, schemas and columns events show, and from when to when."""

from dataclasses import dataclass, field
from typing import Any

from floe.catalog.edges import CONSUMES, DATASET, OBSERVED, PROCESS, PRODUCES
from floe.catalog.recording.facets import (
    ColumnSource,
    metadata_text,
    read_columns,
    read_schema,
)
from floe.catalog.recording.merges import (
    COLUMN_EDGES,
    COLUMN_SIGHTINGS,
    EDGES,
    FIRST_COLUMN_EDGES,
    SCHEMAS,
    SIGHTINGS,
)
from floe.catalog.recording.names import resolve_datasets
from floe.catalog.recording.scope import Recording, hour_of, start_of, widen
from floe.catalog.schemas import hash_schema
from floe.catalog.stores.merging import Row

# It stands in every row of a lineage, and tells apart only those of one process and dataset.
LINEAGE_BYTES = 8
Spans = dict[Any, tuple[Any, Any]]
# The process, the dataset that it fills, and the hash of how.
Lineage = tuple[int, int, str]


def record_edges(recording: Recording) -> None:
    """Write who reads and writes what. Sightings are kept to the hour: a busy edge is one write."""
    spans: Spans = {}
    for claim in recording.claims:
        if claim.process_key is None:
            continue
        process_id, hour = recording.process_id(claim), hour_of(claim.at)
        for dataset in claim.datasets:
            if dataset.reads or dataset.writes:
                number = recording.dataset_id(dataset.namespace, dataset.name)
                widen(spans, _edge(process_id, number, writes=dataset.writes), hour)
    _write_spans(recording, spans)


def _edge(process_id: int, dataset_id: int, *, writes: bool) -> tuple[Any, ...]:
    if writes:
        return (PROCESS, process_id, DATASET, dataset_id, PRODUCES, OBSERVED)
    return (DATASET, dataset_id, PROCESS, process_id, CONSUMES, OBSERVED)


def _write_spans(recording: Recording, spans: Spans) -> None:
    known, now, rows = recording.memory.edges, recording.written_now, []
    for edge in sorted(spans):
        first, last = spans[edge]
        seen = known.get(edge)
        if seen is not None and seen[0] <= first and seen[1] >= last:
            continue
        known.put(edge, (min(first, seen[0]), max(last, seen[1])) if seen else (first, last))
        moments = (recording.moment(start_of(first)), recording.moment(start_of(last)))
        rows.append((*edge, *moments, now))
    recording.merge(EDGES, rows)


@dataclass
class Described:
    """What events describe that was not known: columns of schemas, and lineages by their bytes."""

    schemas: dict[str, list[Row]] = field(default_factory=dict)
    lineages: dict[bytes, list[ColumnSource]] = field(default_factory=dict)


def read_descriptions(recording: Recording) -> Described:
    """Read what is new. It needs no numbers: the store may look for those meanwhile."""
    described, memory = Described(), recording.memory
    for claim in recording.claims:
        process_id = memory.processes.get(claim.process_key) if claim.process_key else None
        for dataset in claim.datasets:
            if dataset.schema is not None:
                _read_schema(recording, dataset.schema, described)
            columns = dataset.columns
            if columns is None or claim.process_key is None or columns in described.lineages:
                continue
            number = memory.datasets.get((dataset.namespace, dataset.name))
            if (process_id, number, _lineage_hash(recording, columns)) not in memory.columns:
                described.lineages[columns] = read_columns(columns)
    return described


def _read_schema(recording: Recording, raw: bytes, described: Described) -> None:
    digest = recording.digest(raw)
    if digest in recording.memory.schemas:
        return
    columns = read_schema(raw)
    schema_hash = hash_schema(columns) if columns else ""
    recording.memory.schemas.put(digest, schema_hash)
    if columns:
        described.schemas[schema_hash] = [
            (schema_hash, order, column.name, column.type, "Y", metadata_text(column))
            for order, column in enumerate(columns)
        ]


def _lineage_hash(recording: Recording, raw: bytes) -> str:
    return recording.digest(raw)[:LINEAGE_BYTES].hex()


def record_schemas(recording: Recording, described: Described) -> None:
    """Write the schemas that datasets were seen with."""
    spans: Spans = {}
    for claim in recording.claims:
        for dataset in claim.datasets:
            schema_hash = recording.schema_hash(dataset)
            if schema_hash:
                number = recording.dataset_id(dataset.namespace, dataset.name)
                widen(spans, (number, schema_hash), claim.at)
    new = described.schemas
    recording.merge(SCHEMAS, [row for key in sorted(new) for row in new[key]])
    rows = []
    for (number, schema_hash), (first, last) in sorted(spans.items()):
        if (number, schema_hash) not in recording.memory.sighted:
            recording.memory.sighted.put((number, schema_hash), True)
            recording.reworded.add(number)
        rows.append((number, schema_hash, recording.moment(first), recording.moment(last)))
    recording.merge(SIGHTINGS, rows)


def record_columns(recording: Recording, described: Described) -> None:
    """Write which column feeds which, once for each distinct lineage of a process and dataset."""
    spans: Spans = {}
    new: dict[Lineage, list[ColumnSource]] = {}
    for claim in recording.claims:
        if claim.process_key is None:
            continue
        process_id = recording.process_id(claim)
        for dataset in claim.datasets:
            if dataset.columns is None:
                continue
            number = recording.dataset_id(dataset.namespace, dataset.name)
            key = (process_id, number, _lineage_hash(recording, dataset.columns))
            widen(spans, key, claim.at)
            if key not in recording.memory.columns and dataset.columns in described.lineages:
                new[key] = described.lineages[dataset.columns]
    _write_columns(recording, new)
    rows = [
        (*key, recording.moment(first), recording.moment(last))
        for key, (first, last) in sorted(spans.items())
    ]
    recording.merge(COLUMN_SIGHTINGS, rows)


def _write_columns(recording: Recording, new: dict[Lineage, list[ColumnSource]]) -> None:
    names = {source[:2] for sources in new.values() for source in sources}
    resolve_datasets(recording, names)
    numbers = {name: recording.dataset_id(*name) for name in names}
    first: list[Row] = []
    rows: list[Row] = []
    # Sorted, so that two writers of one lineage never wait for each other in a circle.
    for key in sorted(new):
        process_id, target_id, lineage_hash = key
        recording.memory.columns.put(key, True)
        gathered = first if target_id in recording.made else rows
        for namespace, name, column, target, kind in new[key]:
            source_id = numbers[namespace, name]
            gathered.append((target_id, target, source_id, column, process_id, kind, lineage_hash))
    # Two names of one dataset can make one edge of two.
    recording.merge(FIRST_COLUMN_EDGES, list(dict.fromkeys(first)))
    recording.merge(COLUMN_EDGES, rows)
