"""The content of a catalog, without ids and times that depend on event order."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import text

from floe.catalog.database import Catalog

# Each query identifies rows by natural keys instead of surrogate ids.
QUESTIONS = {
    "events": "SELECT event_day, event_hash, event_type, run_uuid, process_key FROM run_event",
    "history": "SELECT event_hash, historical FROM run_event",
    "processes": "SELECT process_key, name, technology, team, status FROM process",
    "datasets": "SELECT full_name, description, owner_team, status FROM dataset",
    "runs": (
        "SELECT run_uuid, process_key, business_date, start_ts, end_ts, r.status, parent_run_uuid, "
        "saw_success, saw_failure, facets_at, facets_json "
        "FROM process_run r JOIN process USING (process_id)"
    ),
    "inputs": (
        "SELECT run_uuid, full_name, i.version_tag, v.state FROM run_input i "
        "JOIN process_run USING (run_id) JOIN dataset USING (dataset_id) "
        "LEFT JOIN dataset_version v USING (dataset_version_id)"
    ),
    "versions": (
        "SELECT full_name, business_date, state, row_count, v.schema_hash, produced_by_run_id, "
        "produced_at FROM dataset_version v JOIN dataset USING (dataset_id)"
    ),
    "edges": (
        "SELECT source_type, target_type, edge_role, known_by, first_seen, last_seen, "
        "full_name, process_key FROM lineage_edge "
        "JOIN dataset ON dataset_id = CASE WHEN source_type = 'DATASET' THEN source_id "
        "ELSE target_id END "
        "JOIN process ON process_id = CASE WHEN source_type = 'PROCESS' THEN source_id "
        "ELSE target_id END"
    ),
    "columns": (
        "SELECT s.full_name AS source, source_column, t.full_name AS target, target_column, "
        "process_key, kind, lineage_hash FROM column_edge "
        "JOIN dataset s ON s.dataset_id = source_dataset_id "
        "JOIN dataset t ON t.dataset_id = target_dataset_id JOIN process USING (process_id)"
    ),
    "column sightings": (
        "SELECT process_key, full_name, lineage_hash, first_seen, last_seen FROM column_sighting "
        "JOIN process USING (process_id) JOIN dataset USING (dataset_id)"
    ),
    "schemas": (
        "SELECT full_name, s.schema_hash, first_seen, last_seen FROM schema_sighting s "
        "JOIN dataset USING (dataset_id)"
    ),
    "facets": "SELECT owner_type, facet, facet_hash, seen_at, body FROM observed_facet",
    "aliases": (
        "SELECT a.namespace, a.name, full_name FROM dataset_alias a JOIN dataset USING (dataset_id)"
    ),
    "changes": (
        "SELECT kind, full_name, c.business_date FROM change c LEFT JOIN dataset USING (dataset_id)"
    ),
}


def state_of(catalog: Catalog) -> dict[str, list[Any]]:
    """Return everything that events created, as sorted rows equal on every store."""
    with catalog.reading() as session:
        return {
            name: sorted(
                (tuple(map(_plain, row)) for row in session.execute(text(query))), key=repr
            )
            for name, query in QUESTIONS.items()
        }


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return str(value) if isinstance(value, date | UUID) else value
