"""Metadata keys that floe writes to Dagster's assets and event log.

Code that writes a version adds these keys to its materialization, where the observer reads them.
Where Dagster defines a key, floe uses it: `dagster/row_count`, `dagster/column_schema`,
`dagster/column_lineage`.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from dagster import (
    AssetKey,
    JsonMetadataValue,
    TableColumn,
    TableColumnConstraints,
    TableSchema,
)

from floe.catalog.schemas import Column
from floe.execution.asset_versions import OutputVersion
from floe.spec import DatasetSpec, ProcessSpec
from floe.spec.governance import Owner
from floe.spec.identity import dagster_key
from floe.spec.processes import Engine

Read = tuple[str, str]
"""A dataset that was read, and the tag of its version."""

VERSION = "floe/version"
"""The tag of the new version."""
SIZE = "floe/bytes"
"""The size of the version in bytes."""
SNAPSHOT = "floe/snapshot"
"""The table snapshot of the version."""
READS = "floe/reads"
"""The versions that were read, as a list of {"dataset": …, "version": …}."""
SQL = "floe/sql"
"""The executed SQL."""
RUN = "floe/run"
"""The run id in the catalog. A run with this key has reported itself."""
CHECKED = "floe/checked"
"""Whether the version was audited before it was published."""
AWAITS = "floe/awaits"
"""The checks that a version must still pass, although others may read it already."""
STARTED, ENDED = "floe/started_at", "floe/ended_at"
"""Start and end of a part of a step: a dbt model or test."""
VERSIONS = "floe/versions"
"""The versions of all models by dataset, if one asset stands for a dbt project."""
FAILED = "floe/failed"
"""On a failed step: the failed dbt models and tests, with dbt's messages."""
LOG = "floe/log"
"""The path of the log of a failed run."""
FAILED_ROWS = "floe/failed_rows"
"""Of a check: the number of failed rows."""
WRITE = "floe/write"
"""On a Python asset: how its frame is written, if not the default way."""
PARTITION_COLUMN = "partition_expr"
"""On a Python asset: the partition column, under Dagster's name for it."""
PRODUCER_CHECK = "floe_producer"
"""The check of an external asset: whether its last producer run succeeded."""
ROWS, SCHEMA = "dagster/row_count", "dagster/column_schema"


def version_metadata(version: OutputVersion, reads: Sequence[Read] = ()) -> dict[str, Any]:
    """Return the metadata of the materialization of a version."""
    known: dict[str, Any] = {
        VERSION: version.tag,
        ROWS: version.rows,
        SIZE: version.size,
        SNAPSHOT: version.snapshot,
        SCHEMA: schema_metadata(version.columns),
        READS: reads_metadata(reads) if reads else None,
        CHECKED: True,
    }
    return {name: value for name, value in known.items() if value is not None}


def reads_metadata(reads: Sequence[Read]) -> JsonMetadataValue:
    """Return the versions that were read, as metadata."""
    return JsonMetadataValue([{"dataset": dataset, "version": tag} for dataset, tag in reads])


def schema_metadata(columns: Sequence[Column]) -> TableSchema | None:
    """Return the columns of a version as metadata, or None if unknown."""
    return TableSchema([_column(column) for column in columns]) if columns else None


def _column(column: Column) -> TableColumn:
    return TableColumn(
        column.name, column.type, constraints=TableColumnConstraints(nullable=column.nullable)
    )


KINDS: dict[Engine, set[str]] = {
    "spark_sql": {"spark", "sql"},
    "pyspark": {"spark", "python"},
    "python": {"python", "pandas"},
    "command": {"shell"},
    "database": {"sql"},
}
LONGEST_TAG = 63


def asset_key(dataset: str) -> AssetKey:
    """Return the asset key of a dataset."""
    return AssetKey(dagster_key(dataset))


def group_of(name: str, dataset: DatasetSpec | None) -> str:
    """Return the group of a dataset: its category, else its schema."""
    category = dataset.category if dataset is not None else None
    return plain(category or name.partition(".")[0])


def owners_of(*owners: Owner | None) -> list[str]:
    """Return the first given owner in Dagster's form: e-mail address and team."""
    owner = next(filter(None, owners), None)
    if owner is None:
        return []
    return [*([owner.email] if owner.email else []), f"team:{owner.team}"]


def tags_of(*tags: Iterable[str]) -> dict[str, str]:
    """Return floe tags as Dagster tags, with invalid characters replaced."""
    words = [word for group in tags for word in group]
    return {re.sub(r"[^\w.-]", "_", word, flags=re.ASCII)[:LONGEST_TAG]: "" for word in words}


def kinds_of(process: ProcessSpec | None, dataset: DatasetSpec | None) -> set[str]:
    """Return the technology icons (kinds) of a process and its dataset."""
    engine = KINDS[process.runs_on] if process is not None else set()
    return engine | ({plain(dataset.format)} if dataset is not None else set())


def plain(text: str) -> str:
    """Replace characters that Dagster does not allow in names by `_`."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)
