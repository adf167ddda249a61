"""From what became of dbt's nodes to what Dagster is told."""

from collections.abc import Sequence
from typing import Any

from dagster import AssetCheckKey, AssetCheckResult, AssetCheckSeverity, MetadataValue

from floe.orchestration.dbt.building import NodeResult
from floe.orchestration.dbt.checks import UNIQUE_ID, is_strict
from floe.orchestration.dbt.nodes import Node
from floe.orchestration.dbt.versions import Made
from floe.orchestration.metadata import (
    AWAITS,
    CHECKED,
    ENDED,
    READS,
    ROWS,
    SCHEMA,
    SIZE,
    SNAPSHOT,
    SQL,
    STARTED,
    Read,
    reads_metadata,
    schema_metadata,
)

GOOD = frozenset({"success", "pass"})
SKIPPED = frozenset({"skipped", "no-op"})


def is_good(result: NodeResult) -> bool:
    return result.status in GOOD


def is_skipped(result: NodeResult) -> bool:
    return result.status in SKIPPED


def model_metadata(
    result: NodeResult, made: Made, reads: Sequence[Read], awaits: Sequence[str]
) -> dict[str, Any]:
    """Return what a materialisation says, all but the tag of its version."""
    known: dict[str, Any] = {
        ROWS: made.rows,
        SIZE: made.size,
        SNAPSHOT: made.snapshot,
        SCHEMA: schema_metadata(made.columns),
        READS: reads_metadata(reads) if reads else None,
        SQL: MetadataValue.md(f"```sql\n{result.sql}\n```") if result.sql else None,
        CHECKED: False,
        AWAITS: MetadataValue.json(list(awaits)) if awaits else None,
        **_times(result),
    }
    return {name: value for name, value in known.items() if value is not None}


def check_result(test: Node, key: AssetCheckKey, result: NodeResult) -> AssetCheckResult:
    """Return the verdict of a test. One that could not be run has failed, whatever its severity."""
    broken = result.status == "error"
    severe = broken or (is_strict(test) and result.status != "warn")
    metadata: dict[str, Any] = {"dbt/failures": result.failures, **_times(result)}
    if result.sql:
        metadata[SQL] = result.sql
    return AssetCheckResult(
        passed=is_good(result),
        asset_key=key.asset_key,
        check_name=key.name,
        severity=AssetCheckSeverity.ERROR if severe else AssetCheckSeverity.WARN,
        description=None if is_good(result) else result.message,
        metadata=metadata,
    )


def failure_of(node: Node, result: NodeResult) -> dict[str, Any]:
    """Return what the end of a step says of a node that failed."""
    return {
        UNIQUE_ID: result.unique_id,
        "name": node["name"],
        "message": result.message,
        "sql": result.sql,
        **_times(result),
    }


def _times(result: NodeResult) -> dict[str, Any]:
    """Return when dbt began and ended; it says so in UTC, without saying that it is."""
    written = {STARTED: result.started_at, ENDED: result.ended_at}
    return {name: f"{value}+00:00" for name, value in written.items() if value}
