"""The names under which runs of assets leave what floe knows of them in Dagster's event log.

Whoever makes a version writes these into the materialisation; the observer reads them there.
What Dagster has a name for itself keeps that name: `dagster/row_count`, `dagster/column_schema`,
`dagster/column_lineage`.
"""

from collections.abc import Sequence
from typing import Any

from dagster import (
    JsonMetadataValue,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
)

from floe.catalog.schemas import Column
from floe.execution.assets import MadeVersion

Read = tuple[str, str]
"""A dataset that was read, and the tag of the version."""

VERSION = "floe/version"
"""The tag of the version that was made."""
SIZE = "floe/bytes"
"""How many bytes the version takes."""
SNAPSHOT = "floe/snapshot"
"""The snapshot of the lake table that the version is."""
READS = "floe/reads"
"""What was read, as a list of {"dataset": …, "version": …}."""
SQL = "floe/sql"
"""The SQL that made it, as it was run."""
RUN = "floe/run"
"""The run as the catalog knows it. Where it stands, the run has reported itself already."""
CHECKED = "floe/checked"
"""Whether the version was audited before it was published."""
AWAITS = "floe/awaits"
"""The checks that the version, which others may read already, has to pass before it is good."""
STARTED, ENDED = "floe/started_at", "floe/ended_at"
"""When a part of a step began and ended: a model or a test of dbt."""
VERSIONS = "floe/versions"
"""The versions that were made by what is told of as one, by dataset."""
FAILED = "floe/failed"
"""On a step that failed: which models and tests of dbt did, and what dbt said of each."""
LOG = "floe/log"
"""Where the log of a run is, when it failed."""
FAILED_ROWS = "floe/failed_rows"
"""Of a check: how many rows did not pass it."""
WRITE = "floe/write"
"""On the definition of a Python asset: how its frame is written, when not as is usual."""
PARTITION_COLUMN = "partition_expr"
"""On the definition of a Python asset: the column that holds the partition, as Dagster names it."""
PRODUCER_CHECK = "floe_producer"
"""The check of an asset that others make: whether its last producer succeeded."""
ROWS, SCHEMA = "dagster/row_count", "dagster/column_schema"


def version_metadata(made: MadeVersion, reads: Sequence[Read] = ()) -> dict[str, Any]:
    """Return what a materialisation says of the version that it is."""
    known: dict[str, Any] = {
        VERSION: made.tag,
        ROWS: made.rows,
        SIZE: made.size,
        SNAPSHOT: made.snapshot,
        SCHEMA: schema_metadata(made.columns),
        READS: reads_metadata(reads) if reads else None,
        CHECKED: True,
    }
    return {name: value for name, value in known.items() if value is not None}


def reads_metadata(reads: Sequence[Read]) -> JsonMetadataValue:
    """Return what was read as metadata."""
    return JsonMetadataValue([{"dataset": dataset, "version": tag} for dataset, tag in reads])


def schema_metadata(columns: Sequence[Column]) -> TableSchema | None:
    """Return the columns of a version as metadata; None, where they are not known."""
    return TableSchema([_column(one) for one in columns]) if columns else None


def _column(column: Column) -> TableColumn:
    return TableColumn(
        column.name, column.type, constraints=TableColumnConstraints(nullable=column.nullable)
    )
