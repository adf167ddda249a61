"""Iceberg: a version is a snapshot with a tag; the stable name is the table's main branch."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from floe.execution.formats.contract import (
    Spot,
    VersionPlace,
    VersionUnreadableError,
    Written,
)
from floe.execution.formats.iceberg.metadata import read_state
from floe.execution.formats.iceberg.shape import fit_table
from floe.execution.formats.iceberg.tables import (
    MAIN,
    LakeTable,
    quoted,
    references,
    run_script,
    text,
)
from floe.execution.formats.keys import MOST_SHOWN, DuplicateKeysError
from floe.execution.site import Site
from floe.execution.spark.queries import query
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.connect.session import SparkSession

WAP_BRANCH = "spark.wap.branch"
RUN_PROPERTY = "snapshot-property.floe.run"
# What Iceberg counts of a write that can be read back as it is. Its totals are no such thing: on
# a new branch they start from nothing, so that a table that is replaced comes to zero.
COUNTED = {"replace": "added-records", "overwrite_partition": "added-records"}
TAG_PROPERTY = "snapshot-property.floe.version"


class IcebergFormat:
    """How lake tables are read and written."""

    name = "iceberg"
    modes: Sequence[WriteMode] = ("replace", "append", "overwrite_partition", "merge")
    keeps_statistics = True

    def locate(self, site: Site, place: VersionPlace) -> Spot:
        """Name the table, and a branch that no other run uses."""
        word = re.sub(r"\W", "_", f"{place.tag}_{place.run_id or ''}")
        return Spot(_table(site, place).sql, {"branch": f"floe_{word}"})

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        """Write on the version's own branch, which starts from what main shows."""
        noted = self.put(site, spark, frame, place, mode).details
        return self.settle(site, spark, replace(place, details=noted), mode)

    def put(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        """Write without asking which snapshot that made: the branch leads to it."""
        table, branch = _table(site, place), place.details["branch"]
        fits = bool(place.details.get("fits"))
        fitted = frame if fits else fit_table(spark, table, place, frame)
        spark.conf.set(WAP_BRANCH, branch)
        try:
            _write(spark, table, fitted, place, mode)
        finally:
            spark.conf.unset(WAP_BRANCH)
        noted = {"whole": mode != "overwrite_partition", "fits": fits or fitted is frame}
        return Written(details={**place.details, **noted})

    def settle(
        self, site: Site, spark: "SparkSession", place: VersionPlace, mode: WriteMode
    ) -> Written:
        """Ask for the snapshot and what Iceberg counted."""
        head = _head(spark, _table(site, place), place, mode)
        rows = _number(head, "added-records") if mode in COUNTED else None
        details = {**place.details, "snapshot": head["snapshot"]}
        size, files = _number(head, "added-files-size"), _number(head, "added-data-files")
        return Written(rows, size, details, files)

    def read_draft(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        """Read what was written, by its branch as long as its snapshot is not known."""
        if "snapshot" in place.details:
            return self.read(site, spark, place)
        frame = query(spark, _table(site, place).on(place.details["branch"]))
        return _rows_of(place, frame)

    def publish(
        self, site: Site, spark: "SparkSession", place: VersionPlace, *, newest: bool
    ) -> Mapping[str, Any]:
        """Move main, tag the snapshot, drop the branch: one call to the server."""
        from pyspark.errors import PySparkException

        table = _table(site, place)
        branch, snapshot = place.details["branch"], place.details["snapshot"]
        forward = [table.procedure("fast_forward", text(MAIN), text(branch))]
        finish = [
            f"ALTER TABLE {table.sql} CREATE TAG IF NOT EXISTS {quoted(place.tag)} "
            f"AS OF VERSION {int(snapshot)}",
            f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}",
        ]
        try:
            run_script(spark, [*(forward if newest else ()), *finish])
        except PySparkException:
            # Cut off after the last step, a publish is done again and finds no branch to move.
            if references(spark, table).get(place.tag) != snapshot:
                raise
        return place.details

    def is_whole(self, site: Site, spark: "SparkSession", place: VersionPlace) -> bool:
        """Tell whether the snapshot is still referred to, by its branch or by its tag."""
        known = references(spark, _table(site, place))
        wanted = place.details.get("snapshot")
        return wanted in (known.get(place.details["branch"]), known.get(place.tag), "")

    def discard(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        """Drop the branch."""
        table, branch = _table(site, place), place.details.get("branch")
        if branch is not None and branch in references(spark, table):
            drop = f"ALTER TABLE {table.sql} DROP BRANCH IF EXISTS {quoted(branch)}"
            spark.sql(drop).collect()

    def read(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        """Read a snapshot: all of it, or the partition that the version is."""
        snapshot = place.details.get("snapshot")
        if snapshot is None and place.tag.isdecimal():
            # Spark's own lineage listener names a version by its snapshot.
            snapshot = place.tag
        if snapshot is None:
            snapshot = _tagged(site, spark, place)
        return _rows_of(place, query(spark, _table(site, place).at(snapshot)))

    def show(
        self, site: Site, spark: "SparkSession", place: VersionPlace
    ) -> Mapping[str, Any] | None:
        """Let main show a version again: its snapshot, or its rows where it is a partition."""
        table = _table(site, place)
        if place.details.get("whole", True):
            snapshot = str(int(place.details["snapshot"]))
            spark.sql(table.procedure("set_current_snapshot", snapshot)).collect()
        else:
            frame = self.read(site, spark, place)
            frame.writeTo(table.sql).overwrite(_partition(place))
        return None

    def hide(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        """Take a version off main when there is none to show in its place."""
        from pyspark.sql import functions as F  # noqa: N812

        table = _table(site, place)
        which = F.lit(True) if place.details.get("whole", True) else _partition(place)
        spark.table(table.sql).limit(0).writeTo(table.sql).overwrite(which)

    def vacuum(self, site: Site, spark: "SparkSession", place: VersionPlace) -> int:
        """Drop the tag. The files go when snapshots are expired, as far as no other needs them."""
        table = _table(site, place)
        if place.tag in references(spark, table):
            spark.sql(f"ALTER TABLE {table.sql} DROP TAG IF EXISTS {quoted(place.tag)}").collect()
        return 0


def _table(site: Site, place: VersionPlace) -> LakeTable:
    return LakeTable.of(site.platform.lake.name, place.dataset)


def _tagged(site: Site, spark: "SparkSession", place: VersionPlace) -> str:
    """Return the snapshot of a version that others wrote, such as dbt: it has the version's tag."""
    table = _table(site, place)
    state = read_state(site, table)
    known = references(spark, table) if state is None else state.references
    if place.tag not in known:
        reason = "whoever wrote it did not say which snapshot it is."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    return known[place.tag]


def _write(
    spark: "SparkSession",
    table: LakeTable,
    frame: "DataFrame",
    place: VersionPlace,
    mode: WriteMode,
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    options = place.spec.format_options
    if sort_by := getattr(options, "sort_by", ()):
        frame = frame.sortWithinPartitions(*sort_by)
    if mode == "merge":
        _merge(spark, table, frame, place)
        return
    writer = frame.writeTo(table.sql).option(RUN_PROPERTY, place.run_id or "")
    writer = writer.option(TAG_PROPERTY, place.tag)
    if mode == "append":
        writer.append()
    else:
        writer.overwrite(F.lit(True) if mode == "replace" else _partition(place))


def _merge(
    spark: "SparkSession", table: LakeTable, frame: "DataFrame", place: VersionPlace
) -> None:
    view = "floe_merge_source"
    frame.createOrReplaceTempView(view)
    # Read twice, and computed once: the second time it might be other rows.
    spark.catalog.cacheTable(view)
    try:
        _check_keys(spark, view, place)
        same = " AND ".join(f"t.{quoted(key)} <=> s.{quoted(key)}" for key in place.spec.keys)
        spark.sql(
            f"MERGE INTO {table.sql} AS t USING {view} AS s ON {same} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()
    finally:
        spark.catalog.uncacheTable(view)


def _check_keys(spark: "SparkSession", view: str, place: VersionPlace) -> None:
    """Refuse two new rows with the same keys: MERGE would let both in where neither was before."""
    keys = ", ".join(quoted(key) for key in place.spec.keys)
    twice = spark.sql(
        f"SELECT {keys}, count(*) FROM {view} GROUP BY {keys} "  # noqa: S608
        f"HAVING count(*) > 1 ORDER BY {keys} LIMIT {MOST_SHOWN + 1}"
    ).collect()
    if twice:
        raise DuplicateKeysError(place.dataset, place.spec.keys, twice)


def _partition(place: VersionPlace) -> "Column":
    """The rows of the version: those whose partition column holds its key."""
    from pyspark.sql import functions as F  # noqa: N812

    name = place.spec.partition_column
    assert name is not None
    kind = next((one.type for one in place.spec.columns if one.name == name), "string")
    return F.col(name) == F.lit(place.key).cast(kind)


def _rows_of(place: VersionPlace, frame: "DataFrame") -> "DataFrame":
    """All rows of a table, or those of the partition that the version is."""
    return frame if place.details.get("whole", True) else frame.where(_partition(place))


def _head(
    spark: "SparkSession", table: LakeTable, place: VersionPlace, mode: WriteMode
) -> dict[str, Any]:
    """Return the snapshot that was written, with what Iceberg counted."""
    wanted = "summary['floe.run'] = :run AND summary['floe.version'] = :version"
    source = f"{table.sql}.snapshots"
    if mode == "merge":
        # A statement cannot say whose snapshot it makes; its branch knows.
        source += f" JOIN {table.sql}.refs USING (snapshot_id)"
        wanted = "name = :branch"
    values = {"run": place.run_id or "", "version": place.tag, "branch": place.details["branch"]}
    rows = query(
        spark,
        f"SELECT snapshot_id, committed_at, summary FROM {source} WHERE {wanted}",  # noqa: S608
        values,
    ).collect()
    # Sorted here: for Spark that is one more job, and there is seldom more than one.
    newest = max(rows, key=lambda row: row.committed_at)
    return {"snapshot": str(newest.snapshot_id), **newest.summary}


def _number(head: Mapping[str, Any], name: str) -> int | None:
    value = head.get(name)
    return None if value is None else int(value)
