"""The catalog's first tables, the view on schemas, and the full-text index.

Constraints get their names from the convention that env.py hands to Alembic.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from floe.catalog.stores import store_for
from floe.catalog.tables.types import Identifier, JsonText, RunUuid, UtcTime, YesNo

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SHORT = sa.String(20)
NAME = sa.String(200)
LONG_NAME = sa.String(300)
FULL_NAME = sa.String(600)
PLACE = sa.String(1000)
ZONE = sa.String(60)
HASH = sa.String(64)

# Ordered so that they can be dropped one after the other.
TABLES = (
    "dataset_search",
    "change",
    "change_cursor",
    "change_head",
    "import_state",
    "run_event",
    "audit_log",
    "lease",
    "role_grant",
    "access_token",
    "principal",
    "dataset_registration",
    "quality_check_result",
    "quality_check_def",
    "column_edge",
    "column_sighting",
    "observed_facet",
    "schema_sighting",
    "lineage_edge",
    "run_step",
    "run_input",
    "process_run",
    "dataset_event",
    "dataset_version",
    "dataset_schema",
    "dataset_alias",
    "dataset_tag",
    "process",
    "dataset",
    "sla",
    "project",
)


def upgrade() -> None:
    create_declarations()
    create_dataset_details()
    create_runs()
    create_lineage()
    create_quality()
    create_governance()
    create_events()
    create_changes()
    create_schema_view()
    for statement in store_for(op.get_context().dialect.name).search_ddl():
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP VIEW dataset_version_schema")
    for table in TABLES:
        op.drop_table(table)


def row_id(name: str) -> sa.Column[Any]:
    """Return an id column that only the database assigns."""
    return sa.Column(name, Identifier, sa.Identity(always=True), primary_key=True)


def key(name: str, kind: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def required(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, nullable=False, **options)


def optional(name: str, kind: Any, **options: Any) -> sa.Column[Any]:
    return sa.Column(name, kind, **options)


def refers(name: str, target: str, **options: Any) -> sa.Column[Any]:
    """Return a foreign key column, NOT NULL unless `options` say otherwise."""
    return sa.Column(name, Identifier, sa.ForeignKey(target), **{"nullable": False, **options})


def create_declarations() -> None:
    op.create_table(
        "project",
        row_id("project_id"),
        required("name", NAME),
        optional("version", sa.String(50), quote=False),
        optional("description", sa.Text()),
        required("timezone", ZONE),
        required("content_hash", HASH),
        required("created_at", UtcTime()),
        optional("updated_at", UtcTime()),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "sla",
        row_id("sla_id"),
        required("name", sa.String(650)),
        optional("description", sa.Text()),
        optional("sla_window_sec", sa.Integer()),
        optional("due", sa.String(8)),
        optional("zone", ZONE),
        optional("calendar", sa.String(100)),
        optional("day_offset", sa.Integer()),
        optional("escalation_json", JsonText()),
        required("created_at", UtcTime()),
        optional("updated_at", UtcTime()),
        sa.UniqueConstraint("name"),
    )
    create_datasets()
    create_processes()


def create_datasets() -> None:
    op.create_table(
        "dataset",
        row_id("dataset_id"),
        required("namespace", NAME),
        required("name", LONG_NAME),
        required("full_name", FULL_NAME),
        optional("description", sa.Text()),
        optional("category", sa.String(100)),
        optional("default_format", sa.String(50)),
        optional("owner_team", NAME),
        optional("owner_email", NAME),
        refers("default_sla_id", "sla.sla_id", nullable=True),
        required("status", SHORT),
        refers("project_id", "project.project_id", nullable=True),
        optional("timezone", ZONE),
        required("needs_validation", YesNo()),
        optional("schema_hash", HASH),
        optional("declaration_json", JsonText()),
        optional("created_by", sa.String(100)),
        required("created_at", UtcTime()),
        optional("updated_at", UtcTime()),
    )
    op.create_index("idx_dataset_fullname", "dataset", ["full_name"], unique=True)
    op.create_index("idx_dataset_name", "dataset", ["name"])
    op.create_index("idx_dataset_project", "dataset", ["project_id"])


def create_processes() -> None:
    op.create_table(
        "process",
        row_id("process_id"),
        required("process_key", FULL_NAME),
        optional("name", LONG_NAME),
        optional("description", sa.Text()),
        optional("technology", sa.String(50)),
        optional("team", NAME),
        optional("owner_email", NAME),
        required("trigger_mode", SHORT),
        required("status", SHORT),
        refers("sla_id", "sla.sla_id", nullable=True),
        refers("project_id", "project.project_id", nullable=True),
        optional("declaration_json", JsonText()),
        required("created_at", UtcTime()),
        optional("updated_at", UtcTime()),
    )
    op.create_index("idx_process_key", "process", ["process_key"], unique=True)
    op.create_index("idx_process_name", "process", ["name"])
    op.create_index("idx_process_project", "process", ["project_id"])


def create_dataset_details() -> None:
    op.create_table(
        "dataset_tag",
        refers("dataset_id", "dataset.dataset_id", primary_key=True),
        key("tag", NAME),
    )
    op.create_index("idx_dataset_tag", "dataset_tag", ["tag"])
    op.create_table(
        "dataset_alias",
        key("namespace", NAME),
        key("name", LONG_NAME),
        refers("dataset_id", "dataset.dataset_id"),
        required("created_at", UtcTime()),
    )
    op.create_index("idx_dataset_alias_dataset", "dataset_alias", ["dataset_id"])
    op.create_table(
        "dataset_schema",
        key("schema_hash", HASH),
        key("column_order", sa.Integer()),
        required("column_name", NAME),
        required("column_type", PLACE),
        required("nullable", YesNo()),
        optional("column_metadata", JsonText()),
    )
    create_versions()


def create_versions() -> None:
    op.create_table(
        "dataset_version",
        row_id("dataset_version_id"),
        refers("dataset_id", "dataset.dataset_id"),
        required("version_tag", LONG_NAME),
        optional("business_date", sa.Date()),
        optional("partition_key", LONG_NAME),
        required("seq", sa.Integer()),
        required("state", SHORT),
        optional("path", PLACE, quote=False),
        optional("row_count", sa.BigInteger()),
        optional("size_bytes", sa.BigInteger()),
        optional("checksum", NAME),
        optional("schema_hash", HASH),
        optional("produced_by_run_id", RunUuid()),
        required("produced_at", UtcTime()),
        required("legal_hold", YesNo()),
        optional("metadata_json", JsonText()),
        sa.UniqueConstraint("dataset_id", "version_tag", name="unq_ds_ver"),
    )
    op.create_index("idx_version_produced", "dataset_version", ["dataset_id", "produced_at"])
    op.create_index("idx_version_date", "dataset_version", ["dataset_id", "business_date", "state"])
    op.create_index("idx_version_run", "dataset_version", ["produced_by_run_id"])
    op.create_table(
        "dataset_event",
        row_id("dataset_event_id"),
        refers("dataset_id", "dataset.dataset_id"),
        refers("dataset_version_id", "dataset_version.dataset_version_id", nullable=True),
        required("event_type", sa.String(50)),
        optional("actor", NAME),
        required("occurred_at", UtcTime()),
        optional("detail_json", JsonText()),
    )
    op.create_index("idx_dataset_event", "dataset_event", ["dataset_id", "occurred_at"])


def create_runs() -> None:
    op.create_table(
        "process_run",
        row_id("run_id"),
        required("run_uuid", RunUuid()),
        refers("process_id", "process.process_id"),
        optional("business_date", sa.Date()),
        optional("partition_key", LONG_NAME),
        optional("start_ts", UtcTime()),
        optional("end_ts", UtcTime()),
        required("status", SHORT),
        required("attempt", sa.Integer()),
        optional("parent_run_uuid", RunUuid()),
        optional("log_location", PLACE),
        required("historical", YesNo()),
        optional("facets_json", JsonText()),
        optional("facets_at", UtcTime()),
        required("saw_success", YesNo()),
        required("saw_failure", YesNo()),
        required("created_at", UtcTime()),
        sa.UniqueConstraint("run_uuid"),
    )
    op.create_index("idx_process_run_process_ts", "process_run", ["process_id", "start_ts"])
    op.create_index("idx_process_run_date", "process_run", ["process_id", "business_date"])
    op.create_index("idx_process_run_parent", "process_run", ["parent_run_uuid"])
    op.create_index("idx_process_run_created", "process_run", ["created_at"])
    create_run_details()


def create_run_details() -> None:
    op.create_table(
        "run_input",
        refers("run_id", "process_run.run_id", primary_key=True),
        refers("dataset_id", "dataset.dataset_id", primary_key=True),
        key("version_tag", LONG_NAME),
        refers("dataset_version_id", "dataset_version.dataset_version_id", nullable=True),
    )
    op.create_index("idx_run_input_dataset", "run_input", ["dataset_id"])
    op.create_index("idx_run_input_version", "run_input", ["dataset_version_id"])
    op.create_table(
        "run_step",
        row_id("run_step_id"),
        refers("run_id", "process_run.run_id"),
        required("step_name", NAME),
        required("step_order", sa.Integer()),
        optional("depends_on_json", JsonText()),
        required("status", SHORT),
        optional("start_ts", UtcTime()),
        optional("end_ts", UtcTime()),
        optional("row_count", sa.BigInteger()),
        optional("detail_json", JsonText()),
        sa.UniqueConstraint("run_id", "step_name"),
    )


def create_lineage() -> None:
    op.create_table(
        "lineage_edge",
        row_id("edge_id"),
        required("source_type", SHORT),
        required("source_id", Identifier),
        required("target_type", SHORT),
        required("target_id", Identifier),
        required("edge_role", sa.String(30)),
        required("known_by", SHORT),
        optional("transform_meta", sa.Text()),
        required("first_seen", UtcTime()),
        required("last_seen", UtcTime()),
        optional("ended_at", UtcTime()),
        required("created_at", UtcTime()),
    )
    source, target = ["source_type", "source_id"], ["target_type", "target_id"]
    op.create_index(
        "idx_lineage_src",
        "lineage_edge",
        [*source, *target, "edge_role", "known_by"],
        unique=True,
    )
    op.create_index("idx_lineage_tgt", "lineage_edge", [*target, *source])
    create_column_lineage()


def create_column_lineage() -> None:
    source, target = ["source_dataset_id", "source_column"], ["target_dataset_id", "target_column"]
    op.create_table(
        "column_edge",
        row_id("column_edge_id"),
        required("source_dataset_id", Identifier),
        required("source_column", NAME),
        required("target_dataset_id", Identifier),
        required("target_column", NAME),
        required("process_id", Identifier),
        required("kind", SHORT),
        required("lineage_hash", HASH),
        sa.UniqueConstraint(
            *target, *source, "process_id", "kind", "lineage_hash", name="uq_column_edge"
        ),
    )
    op.create_index("idx_column_edge_source", "column_edge", source)
    op.create_index("idx_column_edge_lineage", "column_edge", ["process_id", "target_dataset_id"])
    create_sightings()


def create_sightings() -> None:
    op.create_table(
        "column_sighting",
        key("process_id", Identifier),
        key("dataset_id", Identifier),
        key("lineage_hash", HASH),
        required("first_seen", UtcTime()),
        required("last_seen", UtcTime()),
    )
    op.create_index("idx_column_sighting_dataset", "column_sighting", ["dataset_id"])
    op.create_table(
        "schema_sighting",
        key("dataset_id", Identifier),
        key("schema_hash", HASH),
        required("first_seen", UtcTime()),
        required("last_seen", UtcTime()),
    )
    op.create_table(
        "observed_facet",
        key("owner_type", SHORT),
        key("owner_id", Identifier),
        key("facet", sa.String(100)),
        required("facet_hash", HASH),
        required("seen_at", UtcTime()),
        required("body", sa.Text()),
    )


def create_quality() -> None:
    op.create_table(
        "quality_check_def",
        row_id("qdef_id"),
        refers("dataset_id", "dataset.dataset_id"),
        required("name", NAME),
        required("kind", sa.String(50)),
        required("severity", SHORT),
        optional("sql_expression", sa.Text()),
        optional("expected_result", sa.Text()),
        optional("parameters_json", JsonText()),
        required("active", YesNo()),
        required("created_at", UtcTime()),
        optional("updated_at", UtcTime()),
        sa.UniqueConstraint("dataset_id", "name"),
    )
    op.create_table(
        "quality_check_result",
        row_id("qres_id"),
        refers("qdef_id", "quality_check_def.qdef_id"),
        refers("dataset_version_id", "dataset_version.dataset_version_id", nullable=True),
        refers("run_id", "process_run.run_id", nullable=True),
        required("executed_at", UtcTime()),
        required("status", SHORT),
        optional("failed_rows", sa.BigInteger()),
        optional("detail_json", JsonText()),
    )
    op.create_index("idx_check_result_def", "quality_check_result", ["qdef_id", "executed_at"])
    op.create_index("idx_check_result_version", "quality_check_result", ["dataset_version_id"])


def create_governance() -> None:
    op.create_table(
        "dataset_registration",
        row_id("reg_id"),
        refers("dataset_id", "dataset.dataset_id"),
        required("submitted_by", NAME),
        required("submitted_at", UtcTime()),
        required("status", SHORT),
        optional("reviewer", NAME),
        optional("reviewed_at", UtcTime()),
        optional("review_comment", sa.Text()),
        optional("request_json", JsonText()),
    )
    op.create_index("idx_registration_status", "dataset_registration", ["status", "submitted_at"])
    op.create_index("idx_registration_dataset", "dataset_registration", ["dataset_id"])
    create_access()
    op.create_table(
        "lease",
        key("name", LONG_NAME),
        required("holder", LONG_NAME),
        required("fence", sa.BigInteger()),
        required("acquired_at", UtcTime()),
        required("expires_at", UtcTime()),
    )


def create_access() -> None:
    op.create_table(
        "principal",
        row_id("principal_id"),
        required("name", NAME),
        required("kind", SHORT),
        optional("email", NAME),
        optional("team", NAME),
        required("created_at", UtcTime()),
        optional("disabled_at", UtcTime()),
        sa.UniqueConstraint("name"),
    )
    op.create_table(
        "access_token",
        row_id("token_id"),
        refers("principal_id", "principal.principal_id"),
        required("token_hash", HASH),
        required("token_start", SHORT),
        required("scopes", LONG_NAME),
        required("created_at", UtcTime()),
        optional("expires_at", UtcTime()),
        optional("last_used_at", UtcTime()),
        optional("revoked_at", UtcTime()),
        sa.UniqueConstraint("token_hash"),
    )
    op.create_index("idx_access_token_principal", "access_token", ["principal_id"])
    op.create_table(
        "role_grant",
        refers("principal_id", "principal.principal_id", primary_key=True),
        key("role", sa.String(30)),
        sa.Column("scope", LONG_NAME, primary_key=True, quote=False),
        optional("granted_by", NAME),
        required("granted_at", UtcTime()),
    )
    op.create_table(
        "audit_log",
        row_id("audit_id"),
        required("occurred_at", UtcTime()),
        required("actor", NAME),
        required("action", sa.String(100)),
        required("object_type", sa.String(50)),
        required("object_key", FULL_NAME),
        optional("before_json", JsonText()),
        optional("after_json", JsonText()),
        optional("reason", sa.Text()),
    )
    op.create_index("idx_audit_object", "audit_log", ["object_type", "object_key", "occurred_at"])
    op.create_index("idx_audit_time", "audit_log", ["occurred_at"])


def create_events() -> None:
    columns = (
        required("event_day", sa.Date()),
        required("event_hash", HASH),
        required("event_time", UtcTime()),
        required("event_type", sa.String(50)),
        optional("run_uuid", RunUuid()),
        optional("process_key", FULL_NAME),
        required("payload_json", sa.LargeBinary()),
        required("payload_codec", sa.String(10)),
        required("historical", YesNo()),
        required("received_at", UtcTime()),
    )
    if op.get_context().dialect.name == "postgresql":
        create_partitioned_events(columns)
    else:
        op.create_table(
            "run_event",
            row_id("event_id"),
            *columns,
            sa.UniqueConstraint("event_day", "event_hash"),
        )
    op.create_index("idx_event_runuuid", "run_event", ["run_uuid"])
    op.create_index("idx_event_process", "run_event", ["process_key", "event_time"])
    op.create_table(
        "import_state",
        sa.Column("source", FULL_NAME, primary_key=True, quote=False),
        required("done_lines", sa.BigInteger()),
        required("done_bytes", sa.BigInteger()),
        required("rejected_lines", sa.BigInteger()),
        optional("started_by", NAME),
        required("updated_at", UtcTime()),
    )


def create_partitioned_events(columns: tuple[sa.Column[Any], ...]) -> None:
    op.create_table(
        "run_event",
        required("event_id", Identifier, server_default=sa.Identity(always=True)),
        *columns,
        # On PostgreSQL a unique key must include the partition column.
        sa.PrimaryKeyConstraint("event_day", "event_hash"),
        postgresql_partition_by="RANGE (event_day)",
    )
    op.create_index("idx_event_id", "run_event", ["event_id"])
    # Payloads are already compressed: compressing them again saves nothing.
    op.execute("ALTER TABLE run_event ALTER COLUMN payload_json SET STORAGE EXTERNAL")
    op.execute("CREATE TABLE run_event_default PARTITION OF run_event DEFAULT")


def create_changes() -> None:
    op.create_table(
        "change",
        key("change_position", sa.BigInteger()),
        required("kind", sa.String(50)),
        refers("dataset_id", "dataset.dataset_id", nullable=True),
        refers("dataset_version_id", "dataset_version.dataset_version_id", nullable=True),
        refers("process_id", "process.process_id", nullable=True),
        refers("run_id", "process_run.run_id", nullable=True),
        optional("business_date", sa.Date()),
        optional("partition_key", LONG_NAME),
        required("occurred_at", UtcTime()),
        optional("detail_json", JsonText()),
    )
    head = op.create_table(
        "change_head",
        key("head_id", sa.Integer()),
        required("last_position", sa.BigInteger()),
    )
    op.bulk_insert(head, [{"head_id": 1, "last_position": 0}])
    op.create_table(
        "change_cursor",
        key("reader", NAME),
        required("change_position", sa.BigInteger()),
        required("updated_at", UtcTime()),
    )


def create_schema_view() -> None:
    """Show the columns of each version as if each version had its own copy."""
    op.execute(
        "CREATE VIEW dataset_version_schema ("
        "schema_id, dataset_version_id, column_order, column_name, column_type, "
        "nullable, column_metadata) AS "
        "SELECT s.schema_hash, v.dataset_version_id, s.column_order, s.column_name, "
        "s.column_type, s.nullable, s.column_metadata "
        "FROM dataset_version v JOIN dataset_schema s ON s.schema_hash = v.schema_hash"
    )
