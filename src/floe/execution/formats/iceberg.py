"""Iceberg: a version is a tagged snapshot; the stable name is the main branch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floe.execution.formats.contract import (
    MOST_SHOWN,
    DuplicateKeysError,
    StoredVersion,
    Target,
    VersionUnreadableError,
    Written,
)
from floe.execution.formats.lake_tables import (
    MAIN,
    LakeTable,
    fit_table,
    quoted,
    read_table_state,
    references,
    run_script,
    text,
)
from floe.execution.site import Site
from floe.execution.spark.queries import query
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.connect.session import SparkSession

WAP_BRANCH = "spark.wap.branch"
RUN_PROPERTY = "snapshot-property.floe.run"
# Snapshot counters that give the rows of a write. Iceberg's totals do not: on a new branch they
# start at zero, so a replaced table would count zero rows.
COUNTED = {"replace": "added-records", "overwrite_partition": "added-records"}
TAG_PROPERTY = "snapshot-property.floe.version"


class IcebergFormat:
    """format: iceberg"""

    name = "iceberg"
    modes: Sequence[WriteMode] = ("replace", "append", "overwrite_partition", "merge")
    keeps_statistics = True

    def locate(self, site: Site, version: StoredVersion) -> Target:
        """Return the table and a branch that no other run uses."""
        suffix = re.sub(r"\W", "_", f"{version.tag}_{version.run_id or ''}")
        return Target(_table(site, version).sql, {"branch": f"floe_{suffix}"})

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        """Write on the version's own branch, which starts from main."""
        details = self.write_data(site, spark, frame, version, mode).details
        return self.measure_write(site, spark, replace(version, details=details), mode)

    def write_data(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        """Write without looking up the new snapshot: the branch refers to it."""
        table, branch = _table(site, version), version.details["branch"]
        fits = bool(version.details.get("fits"))
        fitted = frame if fits else fit_table(spark, table, version, frame)
        spark.conf.set(WAP_BRANCH, branch)
        try:
            _write(spark, table, fitted, version, mode)
        finally:
            spark.conf.unset(WAP_BRANCH)
        added = {"whole": mode != "overwrite_partition", "fits": fits or fitted is frame}
        return Written(details={**version.details, **added})

    def measure_write(
        self, site: Site, spark: "SparkSession", version: StoredVersion, mode: WriteMode
    ) -> Written:
        """Look up the snapshot and the counts that Iceberg recorded."""
        head = _head(spark, _table(site, version), version, mode)
        rows = _count(head, "added-records") if mode in COUNTED else None
        details = {**version.details, "snapshot": head["snapshot"]}
        size, files = _count(head, "added-files-size"), _count(head, "added-data-files")
        return Written(rows, size, details, files)

    def read_draft(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        """Read what was written: its snapshot if known, otherwise its branch."""
        if "snapshot" in version.details:
            return self.read(site, spark, version)
        frame = query(spark, _table(site, version).on(version.details["branch"]))
        return _rows_of(version, frame)

    def publish(
        self, site: Site, spark: "SparkSession", version: StoredVersion, *, newest: bool
    ) -> Mapping[str, Any]:
        """Move main, tag the snapshot, drop the branch: one call to the server."""
        from pyspark.errors import PySparkException

        table = _table(site, version)
        branch, snapshot = version.details["branch"], version.details["snapshot"]
        forward = [table.procedure("fast_forward", text(MAIN), text(branch))]
        finish = [
            f"ALTER TABLE {table.sql} CREATE TAG IF NOT EXISTS {quoted(version.tag)} "
            f"AS OF VERSION {int(snapshot)}",
            f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}",
        ]
        try:
            run_script(spark, [*(forward if newest else ()), *finish])
        except PySparkException:
            # Repeated after a crash in the last step, when the branch is already dropped.
            if references(spark, table).get(version.tag) != snapshot:
                raise
        return version.details

    def is_whole(self, site: Site, spark: "SparkSession", version: StoredVersion) -> bool:
        """Tell whether the version's branch or tag still refers to the snapshot."""
        known = references(spark, _table(site, version))
        wanted = version.details.get("snapshot")
        return wanted in (known.get(version.details["branch"]), known.get(version.tag), "")

    def discard(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        """Drop the branch."""
        table, branch = _table(site, version), version.details.get("branch")
        if branch is not None and branch in references(spark, table):
            drop = f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}"
            spark.sql(drop).collect()

    def read(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        """Read a snapshot, or only the version's partition of it."""
        snapshot = version.details.get("snapshot")
        if snapshot is None and version.tag.isdecimal():
            # Spark's own lineage listener names a version by its snapshot.
            snapshot = version.tag
        if snapshot is None:
            snapshot = _tagged(site, spark, version)
        return _rows_of(version, query(spark, _table(site, version).at(snapshot)))

    def show(
        self, site: Site, spark: "SparkSession", version: StoredVersion
    ) -> Mapping[str, Any] | None:
        """Restore a version on main: its snapshot, or the rows of its partition."""
        table = _table(site, version)
        if version.details.get("whole", True):
            snapshot = str(int(version.details["snapshot"]))
            spark.sql(table.procedure("set_current_snapshot", snapshot)).collect()
        else:
            frame = self.read(site, spark, version)
            frame.writeTo(table.sql).overwrite(_partition(version))
        return None

    def hide(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        """Remove a version's rows from main, if no other version can replace it."""
        from pyspark.sql import functions as F  # noqa: N812

        table = _table(site, version)
        which = F.lit(True) if version.details.get("whole", True) else _partition(version)
        spark.table(table.sql).limit(0).writeTo(table.sql).overwrite(which)

    def vacuum(self, site: Site, spark: "SparkSession", version: StoredVersion) -> int:
        """Drop the tag. Expiring snapshots later removes files that nothing else uses."""
        table = _table(site, version)
        if version.tag in references(spark, table):
            spark.sql(f"ALTER TABLE {table.sql} DROP TAG IF EXISTS {quoted(version.tag)}").collect()
        return 0


def _table(site: Site, version: StoredVersion) -> LakeTable:
    return LakeTable.of(site.platform.lake.name, version.dataset)


def _tagged(site: Site, spark: "SparkSession", version: StoredVersion) -> str:
    """Return the tagged snapshot of a version that another tool wrote, such as dbt."""
    table = _table(site, version)
    state = read_table_state(site, table)
    known = references(spark, table) if state is None else state.references
    if version.tag not in known:
        reason = f"its writer recorded no snapshot, and the table has no tag '{version.tag}'."
        raise VersionUnreadableError(version.dataset, version.tag, reason)
    return known[version.tag]


def _write(
    spark: "SparkSession",
    table: LakeTable,
    frame: "DataFrame",
    version: StoredVersion,
    mode: WriteMode,
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    options = version.spec.format_options
    if sort_by := getattr(options, "sort_by", ()):
        frame = frame.sortWithinPartitions(*sort_by)
    if mode == "merge":
        _merge(spark, table, frame, version)
        return
    writer = frame.writeTo(table.sql).option(RUN_PROPERTY, version.run_id or "")
    writer = writer.option(TAG_PROPERTY, version.tag)
    if mode == "append":
        writer.append()
    else:
        writer.overwrite(F.lit(True) if mode == "replace" else _partition(version))


def _merge(
    spark: "SparkSession", table: LakeTable, frame: "DataFrame", version: StoredVersion
) -> None:
    view = "floe_merge_source"
    frame.createOrReplaceTempView(view)
    # Cached because it is read twice, and a second computation might give other rows.
    spark.catalog.cacheTable(view)
    try:
        _check_keys(spark, view, version)
        same = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in version.spec.keys)
        spark.sql(
            f"MERGE INTO {table.sql} AS t USING {view} AS s ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()
    finally:
        spark.catalog.uncacheTable(view)


def _check_keys(spark: "SparkSession", view: str, version: StoredVersion) -> None:
    """Raise on duplicate keys: MERGE would insert both rows if neither key exists yet."""
    keys = ", ".join(quoted(key) for key in version.spec.keys)
    duplicates = spark.sql(
        f"SELECT {keys}, count(*) FROM {view} GROUP BY {keys} "  # noqa: S608
        f"HAVING count(*) > 1 ORDER BY {keys} LIMIT {MOST_SHOWN + 1}"
    ).collect()
    if duplicates:
        raise DuplicateKeysError(version.dataset, version.spec.keys, duplicates)


def _partition(version: StoredVersion) -> "Column":
    """Return the condition that selects the rows of the version's partition."""
    from pyspark.sql import functions as F  # noqa: N812

    name = version.spec.partition_column
    assert name is not None
    kind = next((column.type for column in version.spec.columns if column.name == name), "string")
    return F.col(name) == F.lit(version.key).cast(kind)


def _rows_of(version: StoredVersion, frame: "DataFrame") -> "DataFrame":
    """Return all rows of a table, or only those of the version's partition."""
    return frame if version.details.get("whole", True) else frame.where(_partition(version))


def _head(
    spark: "SparkSession", table: LakeTable, version: StoredVersion, mode: WriteMode
) -> dict[str, Any]:
    """Return the written snapshot's id and summary."""
    wanted = "summary['floe.run'] = :run AND summary['floe.version'] = :version"
    source = f"{table.sql}.snapshots"
    if mode == "merge":
        # MERGE cannot set snapshot properties, so find the snapshot by its branch.
        source += f" JOIN {table.sql}.refs USING (snapshot_id)"
        wanted = "name = :branch"
    values = {
        "run": version.run_id or "",
        "version": version.tag,
        "branch": version.details["branch"],
    }
    rows = query(
        spark,
        f"SELECT snapshot_id, committed_at, summary FROM {source} WHERE {wanted}",  # noqa: S608
        values,
    ).collect()
    # Compared here, because sorting in Spark costs another job for usually one row.
    newest = max(rows, key=lambda row: row.committed_at)
    return {"snapshot": str(newest.snapshot_id), **newest.summary}


def _count(head: Mapping[str, Any], name: str) -> int | None:
    value = head.get(name)
    return None if value is None else int(value)
