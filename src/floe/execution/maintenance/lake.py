"""Maintain a lake table: remove unused branches, snapshots and files; statistics."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from floe.execution.formats.lake_tables import LakeTable, quoted

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

BRANCHES = "floe_"
"""The prefix of the branches that floe writes versions on."""
ORPHAN_AGE = timedelta(days=1, minutes=5)
"""Iceberg does not remove younger files: they may belong to an active write."""
MOST_COMPARED = 200
"""With more snapshots, freed files are not counted: it would take too long."""


@dataclass(frozen=True)
class Snapshot:
    """A snapshot that nothing refers to."""

    snapshot_id: str
    committed_at: datetime


@dataclass(frozen=True)
class ExpiredFiles:
    """The files that only expired snapshots use."""

    count: int
    size: int


def exists(spark: "SparkSession", table: LakeTable) -> bool:
    """Tell whether the table was ever written."""
    return bool(spark.catalog.tableExists(table.sql))


def stray_branches(
    spark: "SparkSession", table: LakeTable, in_use: Collection[str]
) -> dict[str, str]:
    """Return floe's branches that no version is being written on, with snapshots.

    Call it only under the table's lease, so that no writer is about to use a new branch.
    """
    refs = _references(spark, table)
    return {
        name: snapshot
        for name, (kind, snapshot) in refs.items()
        if kind == "BRANCH" and name.startswith(BRANCHES) and name not in in_use
    }


def drop_branch(spark: "SparkSession", table: LakeTable, branch: str) -> None:
    """Drop a branch if it exists."""
    spark.sql(f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}").collect()


def expired_snapshots(
    spark: "SparkSession", table: LakeTable, before: datetime, leaving: Collection[str]
) -> list[Snapshot]:
    """Return older snapshots that no reference keeps, except references in `leaving`."""
    refs = _references(spark, table)
    kept = {snapshot for name, (_, snapshot) in refs.items() if name not in leaving}
    rows = spark.sql(
        f"SELECT snapshot_id, committed_at FROM {table.sql}.snapshots "  # noqa: S608
        f"WHERE committed_at < {_timestamp(before)} ORDER BY committed_at"
    ).collect()
    return [
        Snapshot(str(row.snapshot_id), row.committed_at)
        for row in rows
        if str(row.snapshot_id) not in kept
    ]


def find_expired_files(
    spark: "SparkSession", table: LakeTable, snapshots: Sequence[Snapshot]
) -> ExpiredFiles | None:
    """Count the files that only these snapshots use; None if too many to compare."""
    going = {snapshot.snapshot_id for snapshot in snapshots}
    every = spark.sql(f"SELECT snapshot_id FROM {table.sql}.snapshots").collect()  # noqa: S608
    staying = [row.snapshot_id for row in every if str(row.snapshot_id) not in going]
    if len(staying) > MOST_COMPARED:
        return None
    needed = " UNION ALL ".join(
        f"SELECT file_path FROM {table.sql}.files VERSION AS OF {snapshot_id}"  # noqa: S608
        for snapshot_id in staying
    )
    but = f"LEFT ANTI JOIN ({needed}) AS needed USING (file_path)" if needed else ""
    row = spark.sql(
        "SELECT count(*) AS files, coalesce(sum(size), 0) AS size FROM ("  # noqa: S608
        f"SELECT file_path, max(file_size_in_bytes) AS size FROM {table.sql}.all_files "
        f"GROUP BY file_path) AS known {but}"
    ).first()
    assert row is not None
    return ExpiredFiles(int(row.files), int(row.size))


def expire_snapshots(spark: "SparkSession", table: LakeTable, before: datetime) -> None:
    """Expire older snapshots that nothing refers to, and remove their files."""
    _call(spark, table, "expire_snapshots", older_than=_timestamp(before), retain_last="1")


def orphan_files(
    spark: "SparkSession", table: LakeTable, now: datetime, *, remove: bool
) -> list[tuple[str, int | None]]:
    """Return files in the table's folder that no snapshot uses; with sizes if local."""
    older = _timestamp(now - ORPHAN_AGE)
    rows = _call(spark, table, "remove_orphan_files", older_than=older, dry_run="true")
    paths = [str(row.orphan_file_location) for row in rows]
    sized = [(path, _size(path)) for path in paths]
    if remove and paths:
        _call(spark, table, "remove_orphan_files", older_than=older)
    return sized


def rewrite_data_files(
    spark: "SparkSession", table: LakeTable, min_input_files: int
) -> dict[str, int]:
    """Rewrite small files into larger ones; return the counts before and after."""
    options = f"map('min-input-files', '{int(min_input_files)}')"
    row = _call(spark, table, "rewrite_data_files", options=options)[0]
    return {
        "files_before": int(row.rewritten_data_files_count),
        "files_after": int(row.added_data_files_count),
        "bytes": int(row.rewritten_bytes_count),
    }


def compute_statistics(spark: "SparkSession", table: LakeTable) -> str | None:
    """Let Iceberg count each column's distinct values; return the statistics file."""
    if _current(spark, table) is None:
        return None
    rows = _call(spark, table, "compute_table_stats")
    return str(rows[0].statistics_file) if rows else None


def count_files(spark: "SparkSession", table: LakeTable) -> dict[str, int]:
    """Count files, rows and bytes of the current snapshot, from metadata alone."""
    row = spark.sql(
        "SELECT count(*) AS files, coalesce(sum(record_count), 0) AS row_count, "  # noqa: S608
        f"coalesce(sum(file_size_in_bytes), 0) AS size FROM {table.sql}.files WHERE content = 0"
    ).first()
    assert row is not None
    return {"files": int(row.files), "rows": int(row.row_count), "bytes": int(row.size)}


def _current(spark: "SparkSession", table: LakeTable) -> str | None:
    reference = _references(spark, table).get("main")
    return None if reference is None else reference[1]


def _references(spark: "SparkSession", table: LakeTable) -> dict[str, tuple[str, str]]:
    rows = spark.sql(f"SELECT name, type, snapshot_id FROM {table.sql}.refs").collect()  # noqa: S608
    return {row.name: (row.type, str(row.snapshot_id)) for row in rows}


def _call(spark: "SparkSession", table: LakeTable, name: str, **arguments: str) -> list[Any]:
    """Call an Iceberg procedure; the arguments are SQL expressions."""
    listed = {"table": table.argument, **arguments}
    sql = ", ".join(f"{key} => {value}" for key, value in listed.items())
    return list(spark.sql(f"CALL {quoted(table.lake)}.system.{name}({sql})").collect())


def _timestamp(time: datetime) -> str:
    return f"TIMESTAMP '{time:%Y-%m-%d %H:%M:%S.%f}'"


def _size(path: str) -> int | None:
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        return None
    file = Path(unquote(parts.path))
    return file.stat().st_size if file.is_file() else None
