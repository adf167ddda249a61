"""Database tables: sources are copied to files, outputs are swapped in."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.errors import FloeError
from floe.execution.databases import Transaction, database_url, transaction
from floe.execution.formats.contract import (
    BadRecords,
    Delivery,
    DeliveryIncompleteError,
    StoredVersion,
    Target,
    VersionUnreadableError,
    WriteModeError,
    Written,
)
from floe.execution.formats.jdbc_tables import (
    Table,
    check_keys,
    connection_settings,
    count_rows,
    create_published_table,
    create_sqlite_table,
    is_published,
    is_sqlite,
    jdbc_options,
    parse_table,
    partition_value,
    publish_staging,
    published_tags,
    read_source,
    record_published,
    source_of,
    staging_of,
    withdraw_version,
)
from floe.execution.formats.locations import LocationError, confine
from floe.execution.formats.storage import (
    remove_tree,
    spark_paths,
    storage_folder,
    sync_tree,
    to_spark,
    tree_size,
)
from floe.execution.site import Site
from floe.execution.spark.queries import Counted
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

EXTRACTS = ".floe/extracts"


class NoTableError(FloeError):
    """A dataset cannot be written, because it is defined by a query."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"'{dataset}' is the result of a query and cannot be written. Set options.table."
        )


class JdbcFormat:
    """format: jdbc"""

    name = "jdbc"
    modes: Sequence[WriteMode] = ("replace", "append", "overwrite_partition", "merge")

    # A source: the table's current content is copied, and the copy is the version.

    def find(self, site: Site, version: StoredVersion) -> Delivery | None:
        _check_file_exists(site, version)
        # Only the copy tells whether the content is new.
        return Delivery(str(_copy_folder(site, version)), "", details={"extract": True})

    def verify(
        self, site: Site, spark: "SparkSession", version: StoredVersion, delivery: Delivery
    ) -> Delivery:
        return delivery

    def bad_records(self, site: Site, spark: "SparkSession", version: StoredVersion) -> BadRecords:
        return BadRecords()

    def extract(self, site: Site, spark: "SparkSession", version: StoredVersion) -> Written:
        """Copy the current content of the database into immutable files."""
        _check_file_exists(site, version)
        folder = _copy_folder(site, version)
        remove_tree(folder)
        frame = read_source(site, spark, version, source_of(site, version))
        names = ", ".join(f"`{name}`" for name in frame.columns)
        # A sum of hashes does not depend on the order of rows.
        counted = Counted(frame, content=f"sum(cast(xxhash64({names}) AS decimal(38,0)))")
        counted.frame.write.mode("overwrite").parquet(to_spark(folder))
        sync_tree(folder)
        measured = counted.measured_in(spark.read.parquet(*spark_paths([folder])))
        fingerprint = f"{measured['rows']}-{measured['content'] or 0}"
        details = {"extract": True, "path": str(folder), "fingerprint": fingerprint}
        return Written(int(measured["rows"]), tree_size(folder), details)

    # An output: written to a staging table, published in one transaction.

    def locate(self, site: Site, version: StoredVersion) -> Target:
        table = _table(version)
        return Target(table.sql, {"staging": staging_of(table, version.tag).sql})

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        version: StoredVersion,
        mode: WriteMode,
    ) -> Written:
        if mode not in self.modes:
            raise WriteModeError(version.dataset, self.name, mode, self.modes)
        staging = staging_of(_table(version), version.tag)
        counted = Counted(_storable(frame, site, version))
        with _database(site, version) as database:
            database.run(f"DROP TABLE IF EXISTS {staging.sql}")
            if database.dialect == "sqlite":
                create_sqlite_table(database, staging, counted.frame.schema)
        settings = connection_settings(site, version)
        writer = counted.frame.write.format("jdbc").mode("append").options(**settings)
        batch = str(jdbc_options(version).batch_size)
        writer.options(dbtable=staging.sql, batchsize=batch).save()
        with _database(site, version) as database:
            _check_staged(database, version, staging, mode, counted.rows)
        details = {"staging": staging.sql, "mode": mode, "rows": counted.rows}
        return Written(counted.rows, None, details)

    def read_draft(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        table = _table(version)
        written = table if version.details.get("in_place") else staging_of(table, version.tag)
        return read_source(site, spark, version, written.sql)

    def publish(
        self, site: Site, spark: "SparkSession", version: StoredVersion, *, newest: bool
    ) -> Mapping[str, Any]:
        if version.details.get("extract"):
            return version.details
        table = _table(version)
        with _database(site, version) as database:
            if version.details.get("in_place"):
                _record_once(database, table, version.tag)
            elif not newest and version.details.get("mode", "replace") == "replace":
                # The table already has a later date: keep this version in its staging table.
                return {**version.details, "table": staging_of(table, version.tag).sql}
            else:
                publish_staging(database, version, table)
        return {**version.details, "table": table.sql}

    def is_whole(self, site: Site, spark: "SparkSession", version: StoredVersion) -> bool:
        if version.details.get("extract"):
            return _copy_folder(site, version).is_dir()
        table = _table(version)
        staging = staging_of(table, version.tag)
        with _database(site, version) as database:
            if version.details.get("in_place") or is_published(database, table, version.tag):
                return table.is_in(database)
            wanted = version.details.get("rows")
            return staging.is_in(database) and wanted in (None, count_rows(database, staging))

    def discard(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        self.vacuum(site, spark, version)

    def vacuum(self, site: Site, spark: "SparkSession", version: StoredVersion) -> int:
        """Remove a version's copy or staging table; the published table stays."""
        if version.details.get("extract") or jdbc_options(version).table is None:
            return remove_tree(_copy_folder(site, version))
        staging = staging_of(_table(version), version.tag)
        with _database(site, version) as database:
            database.run(f"DROP TABLE IF EXISTS {staging.sql}")
        return 0

    def read(self, site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
        if version.details.get("extract"):
            return _read_copy(site, spark, version)
        table = _table(version)
        staging = staging_of(table, version.tag)
        with _database(site, version) as database:
            tags = published_tags(database, table)
            if version.tag not in tags and staging.is_in(database):
                return read_source(site, spark, version, staging.sql)
            value = partition_value(version, database.dialect) if _is_partition(version) else None
        _check_current(version, table, tags)
        frame = read_source(site, spark, version, table.sql)
        return frame if value is None else frame.filter(_equals(version, value))

    def show(
        self, site: Site, spark: "SparkSession", version: StoredVersion
    ) -> Mapping[str, Any] | None:
        if version.details.get("extract"):
            return None
        table = _table(version)
        with _database(site, version) as database:
            tags = published_tags(database, table)
            if not tags or tags[-1] != version.tag:
                if version.tag in tags:
                    raise _superseded(version, table)
                publish_staging(database, version, table)
        return {**version.details, "table": table.sql}

    def hide(self, site: Site, spark: "SparkSession", version: StoredVersion) -> None:
        if version.details.get("extract"):
            return
        table = _table(version)
        with _database(site, version) as database:
            if _has_rows(version, published_tags(database, table)):
                withdraw_version(database, version, table)


@contextmanager
def _database(site: Site, version: StoredVersion) -> Iterator[Transaction]:
    with transaction(site, jdbc_options(version).connection) as database:
        yield database


def _table(version: StoredVersion) -> Table:
    name = jdbc_options(version).table
    if name is None:
        raise NoTableError(version.dataset)
    return parse_table(version.dataset, name)


def _copy_folder(site: Site, version: StoredVersion) -> Path:
    """Return the folder of a copy: the recorded one, else where to create it."""
    home = f"{EXTRACTS}/{version.dataset}"
    known = version.details.get("path")
    folder = confine(site, version, str(known) if known else f"{home}/{version.tag}")
    if folder.parent != storage_folder(site, version.spec) / home:
        raise LocationError(version.dataset, str(folder), "is not the folder of an extract.")
    return folder


def _check_file_exists(site: Site, version: StoredVersion) -> None:
    """Raise if the SQLite file is missing: its drivers would create an empty one."""
    if not is_sqlite(site, version):
        return
    url = database_url(site, jdbc_options(version).connection)
    file = Path(str(url.database))
    if url.database not in (None, "", ":memory:") and not file.exists():
        shown = file.relative_to(site.root) if file.is_relative_to(site.root) else file
        reason = (
            f"the SQLite file {shown} of the connection "
            f"'{jdbc_options(version).connection}' does not exist"
        )
        raise DeliveryIncompleteError(version.dataset, reason)


def _read_copy(site: Site, spark: "SparkSession", version: StoredVersion) -> "DataFrame":
    folder = _copy_folder(site, version)
    if not (folder / "_SUCCESS").is_file():
        raise VersionUnreadableError(version.dataset, version.tag, f"{folder} is missing.")
    return spark.read.parquet(*spark_paths([folder]))


def _storable(frame: "DataFrame", site: Site, version: StoredVersion) -> "DataFrame":
    """Return a frame with column types that the database supports."""
    if not is_sqlite(site, version):
        return frame
    # SQLite has no date or time types: its driver would write milliseconds.
    days = ("date", "timestamp", "timestamp_ntz")
    columns = [
        frame[field.name].cast("string").alias(field.name)
        if field.dataType.simpleString() in days
        else frame[field.name]
        for field in frame.schema.fields
    ]
    # SQLite allows one writer at a time.
    return frame.select(*columns).coalesce(1)


def _check_staged(
    database: Transaction, version: StoredVersion, staging: Table, mode: WriteMode, rows: int | None
) -> None:
    count = count_rows(database, staging)
    if rows is not None and count != rows:
        reason = f"{rows} rows were written to {staging.sql}, but it contains {count}."
        raise VersionUnreadableError(version.dataset, version.tag, reason)
    if mode == "merge":
        check_keys(database, version, staging)


def _record_once(database: Transaction, table: Table, tag: str) -> None:
    create_published_table(database, table)
    if not is_published(database, table, tag):
        record_published(database, table, tag)


def _is_partition(version: StoredVersion) -> bool:
    overwritten = version.details.get("mode") == "overwrite_partition"
    return overwritten and version.spec.partition_column is not None


def _check_current(version: StoredVersion, table: Table, tags: Sequence[str]) -> None:
    """Raise if the table no longer holds a version."""
    if not _is_newest(version, tags):
        raise _superseded(version, table)


def _is_newest(version: StoredVersion, tags: Sequence[str]) -> bool:
    """Tell whether a version is the last one published in its table or partition."""
    if _is_partition(version):
        tags = [tag for tag in tags if tag.rpartition(".")[0] == version.tag.rpartition(".")[0]]
    return list(tags[-1:]) == [version.tag]


def _has_rows(version: StoredVersion, tags: Sequence[str]) -> bool:
    """Tell whether a table may still hold rows of a version."""
    added = version.details.get("mode") in ("append", "merge")
    return version.tag in tags and (added or _is_newest(version, tags))


def _superseded(version: StoredVersion, table: Table) -> VersionUnreadableError:
    reason = f"{table.sql} holds a later version; a database table keeps only its newest."
    return VersionUnreadableError(version.dataset, version.tag, reason)


def _equals(version: StoredVersion, value: Any) -> Any:
    from pyspark.sql.connect import functions as F  # noqa: N812

    return F.col(f"`{version.spec.partition_column}`") == F.lit(value)
