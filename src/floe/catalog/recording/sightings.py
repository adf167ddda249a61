"""Sightings: which edges, schemas and columns events show, and from when to when."""

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
    SCHEMAS,
    SIGHTINGS,
)
from floe.catalog.recording.names import resolve_datasets
from floe.catalog.recording.scope import Recording, digest_of, hour_of, start_of, widen
from floe.catalog.schemas import hash_schema
from floe.catalog.stores.merging import Row

# It stands in every row of a lineage, and tells apart only those of one process and dataset.
LINEAGE_BYTES = 8
Spans = dict[Any, tuple[Any, Any]]


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


def record_schemas(recording: Recording) -> None:
    """Write the schemas that datasets were seen with."""
    spans: Spans = {}
    new: dict[str, list[Row]] = {}
    for claim in recording.claims:
        for dataset in claim.datasets:
            if dataset.schema is None:
                continue
            schema_hash = _schema_hash(recording, dataset.schema, new)
            if schema_hash:
                number = recording.dataset_id(dataset.namespace, dataset.name)
                widen(spans, (number, schema_hash), claim.at)
    recording.merge(SCHEMAS, [row for key in sorted(new) for row in new[key]])
    rows = []
    for (number, schema_hash), (first, last) in sorted(spans.items()):
        if (number, schema_hash) not in recording.memory.sighted:
            recording.memory.sighted.put((number, schema_hash), True)
            recording.reworded.add(number)
        rows.append((number, schema_hash, recording.moment(first), recording.moment(last)))
    recording.merge(SIGHTINGS, rows)


def _schema_hash(recording: Recording, raw: bytes, new: dict[str, list[Row]]) -> str:
    digest = digest_of(raw)
    known = recording.memory.schemas.get(digest)
    if known is not None:
        return known
    columns = read_schema(raw)
    schema_hash = hash_schema(columns) if columns else ""
    recording.memory.schemas.put(digest, schema_hash)
    if columns:
        new[schema_hash] = [
            (schema_hash, order, column.name, column.type, "Y", metadata_text(column))
            for order, column in enumerate(columns)
        ]
    return schema_hash


def record_columns(recording: Recording) -> None:
    """Write which column feeds which, once for each distinct lineage of a process and dataset."""
    spans: Spans = {}
    new: dict[tuple[int, int, str], list[ColumnSource]] = {}
    for claim in recording.claims:
        if claim.process_key is None:
            continue
        process_id = recording.process_id(claim)
        for dataset in claim.datasets:
            if dataset.columns is None:
                continue
            number = recording.dataset_id(dataset.namespace, dataset.name)
            key = (process_id, number, digest_of(dataset.columns)[:LINEAGE_BYTES].hex())
            widen(spans, key, claim.at)
            if key not in recording.memory.columns and key not in new:
                new[key] = read_columns(dataset.columns)
    _write_columns(recording, new)
    rows = [
        (*key, recording.moment(first), recording.moment(last))
        for key, (first, last) in sorted(spans.items())
    ]
    recording.merge(COLUMN_SIGHTINGS, rows)


def _write_columns(
    recording: Recording, new: dict[tuple[int, int, str], list[ColumnSource]]
) -> None:
    names = {(one.namespace, one.name) for sources in new.values() for one in sources}
    resolve_datasets(recording, names)
    rows = []
    for (process_id, target_id, lineage_hash), sources in new.items():
        recording.memory.columns.put((process_id, target_id, lineage_hash), True)
        for one in sources:
            source_id = recording.dataset_id(one.namespace, one.name)
            edge = (source_id, one.source_column, target_id, one.target_column)
            rows.append((*edge, process_id, one.kind, lineage_hash))
    recording.merge(COLUMN_EDGES, sorted(set(rows)))
