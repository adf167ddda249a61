"""Tables of databases: a source is copied, so that a version stays; an output is swapped in."""

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
    Spot,
    VersionPlace,
    VersionUnreadableError,
    WriteModeError,
    Written,
)
from floe.execution.formats.counting import Counted
from floe.execution.formats.jdbc_reading import (
    connection_settings,
    is_sqlite,
    jdbc_options,
    read_source,
    source_of,
)
from floe.execution.formats.jdbc_tables import (
    Table,
    check_keys,
    count_rows,
    is_published,
    make_published,
    make_sqlite_table,
    note_published,
    parse_table,
    partition_value,
    publish_staging,
    published_tags,
    staging_of,
    take_back,
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
from floe.spec.processes import WriteMode

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

EXTRACTS = ".floe/extracts"


class NoTableError(FloeError):
    """A dataset is to be written that is only a query."""

    def __init__(self, dataset: str) -> None:
        super().__init__(
            f"'{dataset}' is the result of a query and cannot be written. Give options.table."
        )


class JdbcFormat:
    """format: jdbc"""

    name = "jdbc"
    modes: Sequence[WriteMode] = ("replace", "append", "overwrite_partition", "merge")

    # A source: what is there now is copied, and the copy is the version.

    def find(self, site: Site, place: VersionPlace) -> Delivery | None:
        _check_file_exists(site, place)
        # Whether it is new shows only when it was copied.
        return Delivery(str(_copy_folder(site, place)), "", details={"extract": True})

    def verify(
        self, site: Site, spark: "SparkSession", place: VersionPlace, delivery: Delivery
    ) -> Delivery:
        return delivery

    def bad_records(self, site: Site, spark: "SparkSession", place: VersionPlace) -> BadRecords:
        return BadRecords()

    def extract(self, site: Site, spark: "SparkSession", place: VersionPlace) -> Written:
        """Copy what the database holds now into files that nobody changes."""
        _check_file_exists(site, place)
        folder = _copy_folder(site, place)
        remove_tree(folder)
        frame = read_source(site, spark, place, source_of(site, place))
        names = ", ".join(f"`{name}`" for name in frame.columns)
        # The order of rows must not matter, and a sum of hashes has none.
        counted = Counted(frame, content=f"sum(cast(xxhash64({names}) AS decimal(38,0)))")
        counted.frame.write.mode("overwrite").parquet(to_spark(folder))
        sync_tree(folder)
        measured = counted.measured_in(spark.read.parquet(*spark_paths([folder])))
        fingerprint = f"{measured['rows']}-{measured['content'] or 0}"
        details = {"extract": True, "path": str(folder), "fingerprint": fingerprint}
        return Written(int(measured["rows"]), tree_size(folder), details)

    # An output: written beside its table, let in by one transaction.

    def locate(self, site: Site, place: VersionPlace) -> Spot:
        table = _table(place)
        return Spot(table.sql, {"staging": staging_of(table, place.tag).sql})

    def write(
        self,
        site: Site,
        spark: "SparkSession",
        frame: "DataFrame",
        place: VersionPlace,
        mode: WriteMode,
    ) -> Written:
        if mode not in self.modes:
            raise WriteModeError(place.dataset, self.name, mode, self.modes)
        staging = staging_of(_table(place), place.tag)
        counted = Counted(_storable(frame, site, place))
        with _told(site, place) as told:
            told.run(f"DROP TABLE IF EXISTS {staging.sql}")
            if told.dialect == "sqlite":
                make_sqlite_table(told, staging, counted.frame.schema)
        settings = connection_settings(site, place)
        writer = counted.frame.write.format("jdbc").mode("append").options(**settings)
        batch = str(jdbc_options(place).batch_size)
        writer.options(dbtable=staging.sql, batchsize=batch).save()
        with _told(site, place) as told:
            _check_staged(told, place, staging, mode, counted.rows)
        details = {"staging": staging.sql, "mode": mode, "rows": counted.rows}
        return Written(counted.rows, None, details)

    def read_draft(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        table = _table(place)
        written = table if place.details.get("in_place") else staging_of(table, place.tag)
        return read_source(site, spark, place, written.sql)

    def publish(
        self, site: Site, spark: "SparkSession", place: VersionPlace, *, newest: bool
    ) -> Mapping[str, Any]:
        if place.details.get("extract"):
            return place.details
        table = _table(place)
        with _told(site, place) as told:
            if place.details.get("in_place"):
                _note_once(told, table, place.tag)
            elif not newest and place.details.get("mode", "replace") == "replace":
                # The table shows a later date already: this version stays beside it.
                return {**place.details, "table": staging_of(table, place.tag).sql}
            else:
                publish_staging(told, place, table)
        return {**place.details, "table": table.sql}

    def is_whole(self, site: Site, spark: "SparkSession", place: VersionPlace) -> bool:
        if place.details.get("extract"):
            return _copy_folder(site, place).is_dir()
        table = _table(place)
        staging = staging_of(table, place.tag)
        with _told(site, place) as told:
            if place.details.get("in_place") or is_published(told, table, place.tag):
                return table.is_in(told)
            wanted = place.details.get("rows")
            return staging.is_in(told) and wanted in (None, count_rows(told, staging))

    def discard(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        self.vacuum(site, spark, place)

    def vacuum(self, site: Site, spark: "SparkSession", place: VersionPlace) -> int:
        """Remove what a version has for itself; the table that all see stays."""
        if place.details.get("extract") or jdbc_options(place).table is None:
            return remove_tree(_copy_folder(site, place))
        staging = staging_of(_table(place), place.tag)
        with _told(site, place) as told:
            told.run(f"DROP TABLE IF EXISTS {staging.sql}")
        return 0

    def read(self, site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
        if place.details.get("extract"):
            return _read_copy(site, spark, place)
        table = _table(place)
        staging = staging_of(table, place.tag)
        with _told(site, place) as told:
            tags = published_tags(told, table)
            if place.tag not in tags and staging.is_in(told):
                return read_source(site, spark, place, staging.sql)
            value = partition_value(place, told.dialect) if _is_partition(place) else None
        _check_current(place, table, tags)
        frame = read_source(site, spark, place, table.sql)
        return frame if value is None else frame.filter(_equals(place, value))

    def show(
        self, site: Site, spark: "SparkSession", place: VersionPlace
    ) -> Mapping[str, Any] | None:
        if place.details.get("extract"):
            return None
        table = _table(place)
        with _told(site, place) as told:
            tags = published_tags(told, table)
            if not tags or tags[-1] != place.tag:
                if place.tag in tags:
                    raise _gone(place, table)
                publish_staging(told, place, table)
        return {**place.details, "table": table.sql}

    def hide(self, site: Site, spark: "SparkSession", place: VersionPlace) -> None:
        if place.details.get("extract"):
            return
        table = _table(place)
        with _told(site, place) as told:
            if _has_rows(place, published_tags(told, table)):
                take_back(told, place, table)


@contextmanager
def _told(site: Site, place: VersionPlace) -> Iterator[Transaction]:
    with transaction(site, jdbc_options(place).connection) as told:
        yield told


def _table(place: VersionPlace) -> Table:
    name = jdbc_options(place).table
    if name is None:
        raise NoTableError(place.dataset)
    return parse_table(place.dataset, name)


def _copy_folder(site: Site, place: VersionPlace) -> Path:
    """Return the folder of a copy: where the catalog keeps it, else where it is to be made."""
    home = f"{EXTRACTS}/{place.dataset}"
    known = place.details.get("path")
    folder = confine(site, place, str(known) if known else f"{home}/{place.tag}")
    if folder.parent != storage_folder(site, place.spec) / home:
        raise LocationError(place.dataset, str(folder), "is not the folder of an extract.")
    return folder


def _check_file_exists(site: Site, place: VersionPlace) -> None:
    """Refuse a SQLite file that is not there: its drivers would make an empty one."""
    if not is_sqlite(site, place):
        return
    url = database_url(site, jdbc_options(place).connection)
    file = Path(str(url.database))
    if url.database not in (None, "", ":memory:") and not file.exists():
        shown = file.relative_to(site.root) if file.is_relative_to(site.root) else file
        reason = (
            f"the SQLite file {shown} of the connection "
            f"'{jdbc_options(place).connection}' does not exist"
        )
        raise DeliveryIncompleteError(place.dataset, reason)


def _read_copy(site: Site, spark: "SparkSession", place: VersionPlace) -> "DataFrame":
    folder = _copy_folder(site, place)
    if not (folder / "_SUCCESS").is_file():
        raise VersionUnreadableError(place.dataset, place.tag, f"{folder} is gone.")
    return spark.read.parquet(*spark_paths([folder]))


def _storable(frame: "DataFrame", site: Site, place: VersionPlace) -> "DataFrame":
    """Return a frame as its database can keep it."""
    if not is_sqlite(site, place):
        return frame
    # SQLite has no type for days and times: its driver would write milliseconds.
    days = ("date", "timestamp", "timestamp_ntz")
    columns = [
        frame[field.name].cast("string").alias(field.name)
        if field.dataType.simpleString() in days
        else frame[field.name]
        for field in frame.schema.fields
    ]
    # One writer at a time is all that it takes.
    return frame.select(*columns).coalesce(1)


def _check_staged(
    told: Transaction, place: VersionPlace, staging: Table, mode: WriteMode, rows: int | None
) -> None:
    found = count_rows(told, staging)
    if rows is not None and found != rows:
        reason = f"{rows} rows were written to {staging.sql}, and {found} are there."
        raise VersionUnreadableError(place.dataset, place.tag, reason)
    if mode == "merge":
        check_keys(told, place, staging)


def _note_once(told: Transaction, table: Table, tag: str) -> None:
    make_published(told, table)
    if not is_published(told, table, tag):
        note_published(told, table, tag)


def _is_partition(place: VersionPlace) -> bool:
    overwritten = place.details.get("mode") == "overwrite_partition"
    return overwritten and place.spec.partition_column is not None


def _check_current(place: VersionPlace, table: Table, tags: Sequence[str]) -> None:
    """Refuse to read a version that the table no longer holds."""
    if not _is_newest(place, tags):
        raise _gone(place, table)


def _is_newest(place: VersionPlace, tags: Sequence[str]) -> bool:
    """Tell whether a version was let in last: into its table, or into its partition."""
    if _is_partition(place):
        tags = [tag for tag in tags if tag.rpartition(".")[0] == place.tag.rpartition(".")[0]]
    return list(tags[-1:]) == [place.tag]


def _has_rows(place: VersionPlace, tags: Sequence[str]) -> bool:
    """Tell whether a table may still hold rows of a version."""
    added = place.details.get("mode") in ("append", "merge")
    return place.tag in tags and (added or _is_newest(place, tags))


def _gone(place: VersionPlace, table: Table) -> VersionUnreadableError:
    reason = f"{table.sql} holds a later version; a database table keeps only its newest."
    return VersionUnreadableError(place.dataset, place.tag, reason)


def _equals(place: VersionPlace, value: Any) -> Any:
    from pyspark.sql.connect import functions as F  # noqa: N812

    return F.col(f"`{place.spec.partition_column}`") == F.lit(value)
