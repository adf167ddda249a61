"""The bare SQL that fetches the rows of the API's responses."""

from collections.abc import Sequence
from typing import Any

import msgspec
import psycopg

Rows = Sequence[tuple[Any, ...]]

DATASET = (
    "SELECT d.*, (SELECT schema_hash FROM schema_sighting s WHERE s.dataset_id = d.dataset_id "
    "ORDER BY last_seen DESC LIMIT 1) FROM dataset d WHERE dataset_id = %s"
)
TAGS = "SELECT tag FROM dataset_tag WHERE dataset_id = %s ORDER BY tag"
COLUMNS_OF = "SELECT * FROM dataset_schema WHERE schema_hash = %s ORDER BY column_order"
VERSIONS = (
    "SELECT * FROM dataset_version WHERE dataset_id = %s ORDER BY dataset_version_id DESC LIMIT 5"
)
NEIGHBOURS = " UNION ALL ".join(
    f"SELECT e.edge_role, p.process_id, p.process_key, p.name, p.team FROM lineage_edge e "
    f"JOIN process p ON p.process_id = e.{far}_id "
    f"WHERE e.{near}_type = 'DATASET' AND e.{near}_id = %s AND e.edge_role = '{role}' "
    f"AND e.ended_at IS NULL"
    for near, far, role in (("target", "source", "PRODUCES"), ("source", "target", "CONSUMES"))
)
PROCESS = "SELECT * FROM process WHERE process_id = %s"
CONTRACT = " UNION ALL ".join(
    f"SELECT DISTINCT e.edge_role, d.full_name FROM lineage_edge e "
    f"JOIN dataset d ON d.dataset_id = e.{far}_id "
    f"WHERE e.{near}_type = 'PROCESS' AND e.{near}_id = %s AND e.edge_role = '{role}' "
    f"AND e.ended_at IS NULL"
    for near, far, role in (("target", "source", "CONSUMES"), ("source", "target", "PRODUCES"))
)
RUN_COLUMNS = (
    "r.run_id, r.run_uuid, r.process_id, p.process_key, r.business_date, r.partition_key, "
    "r.start_ts, r.end_ts, r.status, r.attempt, r.parent_run_uuid, r.historical"
)
LAST_SUCCESS = (
    f"SELECT {RUN_COLUMNS} FROM dataset_version v "
    "JOIN process_run r ON r.run_uuid = v.produced_by_run_id "
    "JOIN process p ON p.process_id = r.process_id "
    "WHERE v.dataset_id = %s AND r.status = 'SUCCESS' ORDER BY v.produced_at DESC LIMIT 1"
)
SQL_OF = (
    "SELECT transform_meta FROM lineage_edge WHERE source_type = 'PROCESS' AND source_id = %s "
    "AND ended_at IS NULL AND transform_meta IS NOT NULL LIMIT 1"
)
RUNS_OF = (
    f"SELECT {RUN_COLUMNS} FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.process_id = %s ORDER BY r.run_id DESC LIMIT 10"
)
RUN = (
    "SELECT r.*, p.process_key, p.name FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.run_uuid = %s"
)
INPUTS = (
    "SELECT i.*, d.full_name, v.business_date, v.state FROM run_input i "
    "JOIN dataset d USING (dataset_id) "
    "LEFT JOIN dataset_version v ON v.dataset_version_id = i.dataset_version_id "
    "WHERE i.run_id = %s ORDER BY d.full_name"
)
OUTPUTS = (
    "SELECT v.*, d.full_name FROM dataset_version v JOIN dataset d USING (dataset_id) "
    "WHERE v.produced_by_run_id = %s ORDER BY d.full_name"
)
STEPS = "SELECT * FROM run_step WHERE run_id = %s ORDER BY step_order"
RUN_LIST = (
    f"SELECT {RUN_COLUMNS} FROM process_run r JOIN process p USING (process_id) "
    "WHERE r.run_id < %s ORDER BY r.run_id DESC"
)
PROCESS_LIST = (
    "SELECT process_id, process_key, name, description, technology, team, owner_email, "
    "trigger_mode, status FROM process WHERE process_key > %s ORDER BY process_key"
)
DATASET_LIST = (
    "SELECT dataset_id, name, full_name, description, category, default_format, owner_team, "
    "owner_email, status FROM dataset WHERE (name, dataset_id) > (%s, 0) "
    "ORDER BY name, dataset_id"
)
TAG_LIST = "SELECT dataset_id, tag FROM dataset_tag WHERE dataset_id = ANY(%s)"
HUB_NUMBERS = "SELECT dataset_id FROM dataset WHERE name LIKE 'ref.%%'"
EDGES = (
    "SELECT source_id, target_type, target_id, edge_role, known_by FROM lineage_edge "
    "WHERE source_type = %s AND source_id = ANY(%s) AND ended_at IS NULL"
)
NODES = {
    "DATASET": "SELECT dataset_id, name, full_name, status, owner_team, default_format "
    "FROM dataset WHERE dataset_id = ANY(%s)",
    "PROCESS": "SELECT process_id, name, process_key, status, team, technology "
    "FROM process WHERE process_id = ANY(%s)",
}


class Driver:
    """A bare connection that fetches the rows of a response."""

    def __init__(self, dsn: str) -> None:
        self._connection = psycopg.connect(dsn, autocommit=True)
        self._connection.prepare_threshold = 1

    def fetch(self, sql: str, *values: Any) -> Rows:
        return self._connection.execute(sql.encode(), values).fetchall()

    def dataset(self, number: int) -> Rows:
        found = self.fetch(DATASET, number)
        self.fetch(TAGS, number)
        self.fetch(COLUMNS_OF, found[0][-1])
        self.fetch(VERSIONS, number)
        self.fetch(NEIGHBOURS, number, number)
        self.fetch(LAST_SUCCESS, number)
        return found

    def process(self, number: int) -> Rows:
        found = self.fetch(PROCESS, number)
        self.fetch(CONTRACT, number, number)
        self.fetch(RUNS_OF, number)
        self.fetch(SQL_OF, number)
        return found

    def run(self, run_uuid: str) -> Rows:
        found = self.fetch(RUN, run_uuid)
        self.fetch(INPUTS, found[0][0])
        self.fetch(OUTPUTS, run_uuid)
        self.fetch(STEPS, found[0][0])
        return found

    def runs(self, before: int, rows: int) -> Rows:
        return self.fetch(f"{RUN_LIST} LIMIT {rows + 1}", before)

    def processes(self, after: str, rows: int) -> Rows:
        return self.fetch(f"{PROCESS_LIST} LIMIT {rows + 1}", after)

    def datasets(self, after: str, rows: int) -> Rows:
        found = self.fetch(f"{DATASET_LIST} LIMIT {rows + 1}", after)
        self.fetch(TAG_LIST, [row[0] for row in found])
        return found

    def walk(self, number: int, depth: int) -> bytes:
        """Fetch the graph below a dataset level by level, and encode it."""
        seen, frontier = {("DATASET", number): 0}, {"DATASET": [number]}
        edges = []
        # One step of depth goes through a process to the next dataset.
        for level in range(1, 2 * depth + 1):
            found: dict[str, list[int]] = {}
            for kind, ids in frontier.items():
                for near, far_type, far, role, known_by in self.fetch(EDGES, kind, ids):
                    edges.append((kind, near, far_type, far, role, known_by))
                    if (far_type, far) not in seen:
                        seen[far_type, far] = (level + 1) // 2
                        found.setdefault(far_type, []).append(far)
            frontier = found
        more = {(of, row[0]) for of, ids in frontier.items() for row in self.fetch(EDGES, of, ids)}
        nodes = [
            {
                "type": kind,
                "id": row[0],
                "name": row[1],
                "key": row[2],
                "status": row[3],
                "team": row[4],
                "technology": row[5],
                "depth": seen[kind, row[0]],
                "more": (kind, row[0]) in more,
            }
            for kind, sql in NODES.items()
            for row in self.fetch(sql, [one for of, one in seen if of == kind])
        ]
        listed = [
            {
                "source_type": kind,
                "source_id": near,
                "target_type": far_type,
                "target_id": far,
                "role": role,
                "known_by": [known_by],
                "via": None,
            }
            for kind, near, far_type, far, role, known_by in edges
        ]
        return msgspec.json.encode({"nodes": nodes, "edges": listed, "truncated": False})
