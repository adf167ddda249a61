"""How claims merge into rows: one rule per table, independent of arrival order."""

from dataclasses import replace

from floe.catalog.stores.merging import (
    Assign,
    Merge,
    Through,
    Unless,
    earliest,
    latest,
    preferred,
)

EVENTS = Merge(
    "run_event",
    (
        "event_day", "event_hash", "event_time", "event_type", "run_uuid", "process_key",
        "payload_json", "payload_codec", "historical", "received_at",
    ),
    key=("event_day", "event_hash"),
    # A historical event becomes live when it arrives live, and never the other way round.
    update=(earliest("historical"),),
    when="{new}.historical < {old}.historical",
    returning=("event_hash", "received_at"),
)  # fmt: skip

# The same, when nobody needs to know which of them are new.
EVENTS_WITHOUT_RESULT = replace(EVENTS, returning=())

PROCESSES = Merge(
    "process",
    ("process_key", "name", "trigger_mode", "status", "created_at"),
    key=("process_key",),
    returning=("process_key", "process_id"),
)

DATASETS = Merge(
    "dataset",
    ("namespace", "name", "full_name", "status", "needs_validation", "created_by", "created_at"),
    key=("full_name",),
    returning=("full_name", "dataset_id"),
    # The name may be an alias of an existing dataset.
    unless=Unless("dataset_alias", ("namespace", "name")),
)

# A run's status follows from all its events: completed wins over failed, failed over aborted, and
# any of them over LOST. A run that both completed and failed is shown as a conflict.
_RANK = (
    "CASE {side}.status WHEN 'SUCCESS' THEN 4 WHEN 'FAILED' THEN 3 "
    "WHEN 'CANCELLED' THEN 2 WHEN 'LOST' THEN 1 ELSE 0 END"
)
_OLD_RANK, _NEW_RANK = _RANK.format(side="{old}"), _RANK.format(side="{new}")


def _own_first(column: str, value: str) -> tuple[str, str]:
    """Let floe's own report of a run win over reports of others."""
    return column, (
        f"CASE WHEN {{new}}.own > {{old}}.own THEN {{new}}.{column} "
        f"WHEN {{new}}.own < {{old}}.own THEN {{old}}.{column} ELSE {value} END"
    )


_NEWER_FACETS = (
    "{new}.facets_at IS NOT NULL AND ({old}.facets_at IS NULL OR {new}.facets_at > {old}.facets_at "
    "OR ({new}.facets_at = {old}.facets_at AND {new}.facets_json > {old}.facets_json))"
)
RUNS = Merge(
    "process_run",
    (
        "run_uuid", "process_id", "business_date", "start_ts", "end_ts", "status", "attempt",
        "parent_run_uuid", "historical", "facets_json", "facets_at", "saw_success", "saw_failure",
        "created_at", "own",
    ),
    key=("run_uuid",),
    update=(
        *(
            _own_first(*rule)
            for rule in (
                ("process_id", "{old}.process_id"),
                earliest("business_date"),
                earliest("start_ts"),
                (
                    "end_ts",
                    f"CASE WHEN {_NEW_RANK} > {_OLD_RANK} THEN {{new}}.end_ts "
                    f"WHEN {_NEW_RANK} < {_OLD_RANK} THEN {{old}}.end_ts "
                    f"ELSE {earliest('end_ts')[1]} END",
                ),
                preferred("status", f"{_NEW_RANK} > {_OLD_RANK}"),
                latest("attempt"),
                earliest("parent_run_uuid"),
                earliest("historical"),
                preferred("facets_json", _NEWER_FACETS),
                preferred("facets_at", _NEWER_FACETS),
                latest("saw_success"),
                latest("saw_failure"),
            )
        ),
        latest("own"),
    ),
    returning=("run_uuid", "run_id", "own"),
)  # fmt: skip

# The statements of a dbt model, which dbt-ol reports as separate jobs.
STEPS = Merge(
    "run_step",
    ("run_id", "step_name", "step_order", "status", "start_ts", "end_ts"),
    key=("run_id", "step_name"),
    update=(
        earliest("start_ts"),
        (
            "end_ts",
            f"CASE WHEN {_NEW_RANK} > {_OLD_RANK} THEN {{new}}.end_ts "
            f"WHEN {_NEW_RANK} < {_OLD_RANK} THEN {{old}}.end_ts "
            f"ELSE {earliest('end_ts')[1]} END",
        ),
        preferred("status", f"{_NEW_RANK} > {_OLD_RANK}"),
    ),
    through=Through("process_run", "run_uuid"),
)

# Runs whose parent has ended. A run that has reported its own end keeps it.
LOST_RUNS = Assign("process_run", "run_id", "status", "process_run.status = 'STARTED'")

_SIGHTING = (earliest("first_seen"), latest("last_seen"))
_SEEN_WIDER = "{new}.first_seen < {old}.first_seen OR {new}.last_seen > {old}.last_seen"

EDGES = Merge(
    "lineage_edge",
    (
        "source_type", "source_id", "target_type", "target_id", "edge_role", "known_by",
        "first_seen", "last_seen", "created_at",
    ),
    key=("source_type", "source_id", "target_type", "target_id", "edge_role", "known_by"),
    update=_SIGHTING,
    when=_SEEN_WIDER,
)  # fmt: skip

COLUMN_EDGES = Merge(
    "column_edge",
    (
        "target_dataset_id", "target_column", "source_dataset_id", "source_column", "process_id",
        "kind", "lineage_hash",
    ),
    key=(
        "target_dataset_id", "target_column", "source_dataset_id", "source_column", "process_id",
        "kind", "lineage_hash",
    ),
)  # fmt: skip

# For datasets created in this transaction: nobody else can have written any.
FIRST_COLUMN_EDGES = replace(COLUMN_EDGES, key=())

COLUMN_SIGHTINGS = Merge(
    "column_sighting",
    ("process_id", "dataset_id", "lineage_hash", "first_seen", "last_seen"),
    key=("process_id", "dataset_id", "lineage_hash"),
    update=_SIGHTING,
    when=_SEEN_WIDER,
)

SCHEMAS = Merge(
    "dataset_schema",
    (
        "schema_hash", "column_order", "column_name", "column_type", "nullable",
        "column_metadata",
    ),
    key=("schema_hash", "column_order"),
)  # fmt: skip

SCHEMA_SIGHTINGS = Merge(
    "schema_sighting",
    ("dataset_id", "schema_hash", "first_seen", "last_seen"),
    key=("dataset_id", "schema_hash"),
    update=_SIGHTING,
    when=_SEEN_WIDER,
)

FACETS = Merge(
    "observed_facet",
    ("owner_type", "owner_id", "facet", "facet_hash", "seen_at", "body"),
    key=("owner_type", "owner_id", "facet"),
    update=(
        ("facet_hash", "{new}.facet_hash"),
        ("seen_at", "{new}.seen_at"),
        ("body", "{new}.body"),
    ),
    when="{new}.seen_at > {old}.seen_at "
    "OR ({new}.seen_at = {old}.seen_at AND {new}.facet_hash > {old}.facet_hash)",
    returning=("owner_type", "owner_id", "facet"),
)

INPUTS = Merge(
    "run_input",
    ("run_id", "dataset_id", "version_tag", "dataset_version_id"),
    key=("run_id", "dataset_id", "version_tag"),
    through=Through("process_run", "run_uuid"),
)

VERSIONS = Merge(
    "dataset_version",
    (
        "dataset_id", "version_tag", "business_date", "seq", "state", "path", "row_count",
        "size_bytes", "checksum", "schema_hash", "produced_by_run_id", "produced_at", "legal_hold",
        "metadata_json", "partition_key",
    ),
    key=("dataset_id", "version_tag"),
)  # fmt: skip

# New versions with reserved ids, so that rows that refer to them need not wait.
NEW_VERSIONS = Merge("dataset_version", ("dataset_version_id", *VERSIONS.columns), with_ids=True)

DATASET_EVENTS = Merge(
    "dataset_event",
    ("dataset_id", "dataset_version_id", "event_type", "actor", "occurred_at"),
)

# A version that was read before it was announced: only the first read is known.
EXTERNAL_VERSIONS = replace(
    VERSIONS,
    update=(earliest("produced_at"),),
    when="{old}.state = 'EXTERNAL' AND {new}.produced_at < {old}.produced_at",
)

# The same, now that its producer has announced it.
ANNOUNCED_VERSIONS = replace(
    VERSIONS,
    update=tuple(
        (name, f"{{new}}.{name}") for name in VERSIONS.columns if name not in VERSIONS.key
    ),
)

# Changes the state of existing versions by their ids.
VERSION_STATES = Assign("dataset_version", "dataset_version_id", "state", "1 = 1")

CHECKS = Merge(
    "quality_check_def",
    ("dataset_id", "name", "kind", "severity", "active", "created_at"),
    key=("dataset_id", "name"),
)

CHECK_RESULTS = Merge(
    "quality_check_result",
    ("qdef_id", "dataset_version_id", "run_id", "executed_at", "status"),
)

# A claim that a steward has decided stays decided, however often it is repeated.
_NEWER_CLAIM = "{new}.last_seen > {old}.last_seen"
DRIFT_CLAIMS = Merge(
    "drift_claim",
    (
        "kind", "dataset_id", "subject_id", "status", "first_seen", "last_seen", "detail_json",
    ),
    key=("kind", "dataset_id", "subject_id"),
    update=(
        earliest("first_seen"),
        latest("last_seen"),
        preferred("detail_json", _NEWER_CLAIM),
    ),
    when=_SEEN_WIDER,
)  # fmt: skip
