"""Upkeep of one lake table: branches, snapshots and files that nobody needs; statistics."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from floe.execution.formats.iceberg.tables import LakeTable, quoted

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

BRANCHES = "floe_"
"""What the names of all branches begin with that floe writes versions on."""
ORPHAN_AGE = timedelta(days=1, minutes=5)
"""Iceberg itself refuses to touch what is younger than a day: it may be a write under way."""
MOST_COMPARED = 200
"""More snapshots than this are not compared file by file: that would take longer than the rest."""


@dataclass(frozen=True)
class Snapshot:
    """A state of the table that nothing refers to."""

    number: str
    committed_at: datetime


@dataclass(frozen=True)
class DoomedFiles:
    """The files that only the snapshots need which are going."""

    count: int
    size: int


def exists(spark: "SparkSession", table: LakeTable) -> bool:
    """Tell whether the table was ever written."""
    return bool(spark.catalog.tableExists(table.sql))


def stray_branches(
    spark: "SparkSession", table: LakeTable, in_use: Collection[str]
) -> dict[str, str]:
    """Return floe's branches that no version is written on, with their snapshots.

    To be asked only under the table's lease: then nobody is about to write on a new one.
    """
    refs = _references(spark, table)
    return {
        name: snapshot
        for name, (kind, snapshot) in refs.items()
        if kind == "BRANCH" and name.startswith(BRANCHES) and name not in in_use
    }


def drop_branch(spark: "SparkSession", table: LakeTable, branch: str) -> None:
    """Drop a branch, if it is there."""
    spark.sql(f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}").collect()


def expired_snapshots(
    spark: "SparkSession", table: LakeTable, before: datetime, leaving: Collection[str]
) -> list[Snapshot]:
    """Return the snapshots older than a moment that no reference keeps but those that leave."""
    refs = _references(spark, table)
    kept = {snapshot for name, (_, snapshot) in refs.items() if name not in leaving}
    rows = spark.sql(
        f"SELECT snapshot_id, committed_at FROM {table.sql}.snapshots "  # noqa: S608
        f"WHERE committed_at < {_moment(before)} ORDER BY committed_at"
    ).collect()
    return [
        Snapshot(str(row.snapshot_id), row.committed_at)
        for row in rows
        if str(row.snapshot_id) not in kept
    ]


def doomed_files(
    spark: "SparkSession", table: LakeTable, snapshots: Sequence[Snapshot]
) -> DoomedFiles | None:
    """Count the files that go with some snapshots; None if there are too many to compare."""
    going = {one.number for one in snapshots}
    every = spark.sql(f"SELECT snapshot_id FROM {table.sql}.snapshots").collect()  # noqa: S608
    staying = [row.snapshot_id for row in every if str(row.snapshot_id) not in going]
    if len(staying) > MOST_COMPARED:
        return None
    needed = " UNION ALL ".join(
        f"SELECT file_path FROM {table.sql}.files VERSION AS OF {number}"  # noqa: S608
        for number in staying
    )
    but = f"LEFT ANTI JOIN ({needed}) AS needed USING (file_path)" if needed else ""
    row = spark.sql(
        "SELECT count(*) AS files, coalesce(sum(size), 0) AS size FROM ("  # noqa: S608
        f"SELECT file_path, max(file_size_in_bytes) AS size FROM {table.sql}.all_files "
        f"GROUP BY file_path) AS known {but}"
    ).first()
    assert row is not None
    return DoomedFiles(int(row.files), int(row.size))


def expire_snapshots(spark: "SparkSession", table: LakeTable, before: datetime) -> None:
    """Forget the snapshots older than a moment that nothing refers to, and remove their files."""
    _call(spark, table, "expire_snapshots", older_than=_moment(before), retain_last="1")


def orphan_files(
    spark: "SparkSession", table: LakeTable, now: datetime, *, remove: bool
) -> list[tuple[str, int | None]]:
    """Return the files in the table's folder that no snapshot knows, with their sizes if local."""
    older = _moment(now - ORPHAN_AGE)
    found = _call(spark, table, "remove_orphan_files", older_than=older, dry_run="true")
    paths = [str(row.orphan_file_location) for row in found]
    sized = [(path, _size(path)) for path in paths]
    if remove and paths:
        _call(spark, table, "remove_orphan_files", older_than=older)
    return sized


def rewrite_data_files(
    spark: "SparkSession", table: LakeTable, min_input_files: int
) -> dict[str, int]:
    """Write small files together into larger ones; say how many became how many."""
    options = f"map('min-input-files', '{int(min_input_files)}')"
    row = _call(spark, table, "rewrite_data_files", options=options)[0]
    return {
        "files_before": int(row.rewritten_data_files_count),
        "files_after": int(row.added_data_files_count),
        "bytes": int(row.rewritten_bytes_count),
    }


def compute_statistics(spark: "SparkSession", table: LakeTable) -> str | None:
    """Let Iceberg count the distinct values of every column; return the file that holds them."""
    if _current(spark, table) is None:
        return None
    rows = _call(spark, table, "compute_table_stats")
    return str(rows[0].statistics_file) if rows else None


def count_files(spark: "SparkSession", table: LakeTable) -> dict[str, int]:
    """Count what the table's current snapshot holds, from its metadata alone."""
    row = spark.sql(
        "SELECT count(*) AS files, coalesce(sum(record_count), 0) AS row_count, "  # noqa: S608
        f"coalesce(sum(file_size_in_bytes), 0) AS size FROM {table.sql}.files WHERE content = 0"
    ).first()
    assert row is not None
    return {"files": int(row.files), "rows": int(row.row_count), "bytes": int(row.size)}


def _current(spark: "SparkSession", table: LakeTable) -> str | None:
    found = _references(spark, table).get("main")
    return None if found is None else found[1]


def _references(spark: "SparkSession", table: LakeTable) -> dict[str, tuple[str, str]]:
    rows = spark.sql(f"SELECT name, type, snapshot_id FROM {table.sql}.refs").collect()  # noqa: S608
    return {row.name: (row.type, str(row.snapshot_id)) for row in rows}


def _call(spark: "SparkSession", table: LakeTable, name: str, **arguments: str) -> list[Any]:
    """Call a procedure of the lake; the arguments are SQL."""
    listed = {"table": table.argument, **arguments}
    said = ", ".join(f"{key} => {value}" for key, value in listed.items())
    return list(spark.sql(f"CALL {quoted(table.lake)}.system.{name}({said})").collect())


def _moment(moment: datetime) -> str:
    return f"TIMESTAMP '{moment:%Y-%m-%d %H:%M:%S.%f}'"


def _size(path: str) -> int | None:
    parts = urlsplit(path)
    if parts.scheme not in ("", "file"):
        return None
    file = Path(unquote(parts.path))
    return file.stat().st_size if file.is_file() else None
