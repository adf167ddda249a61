"""Database tables: a version is staged, then swapped in by one transaction.

The same transaction records the version in the table floe_published, so after a crash it is known
which versions were published.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, cast

from floe import clock
from floe.errors import FloeError
from floe.execution.databases import Transaction, jdbc_address
from floe.execution.formats.contract import (
    DeliveryRejectedError,
    DuplicateKeysError,
    StoredVersion,
    VersionUnreadableError,
    column_difference,
)
from floe.execution.site import Site
from floe.spec.formats import JdbcOptions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

PUBLISHED = "floe_published"
LONGEST_NAME = 60
_NAME = re.compile(r'(?:([A-Za-z_][\w$]*|"[^"]+")\.)?([A-Za-z_][\w$]*|"[^"]+")')

DRIVERS = {"jdbc:sqlite:": "org.sqlite.JDBC", "jdbc:postgresql:": "org.postgresql.Driver"}
DEFAULT_PARTITIONS = 8
"""Number of parallel reads if num_partitions is not set."""


class TableNameError(FloeError):
    """The table of a dataset has an invalid name."""

    def __init__(self, dataset: str, name: str) -> None:
        super().__init__(
            f"Invalid table name '{name}' of '{dataset}'. Expected table or schema.table."
        )


@dataclass(frozen=True)
class Table:
    """The name of a database table."""

    schema: str | None
    name: str

    @property
    def sql(self) -> str:
        return f"{_sql(self.schema)}.{_sql(self.name)}" if self.schema else _sql(self.name)

    def sibling(self, name: str) -> "Table":
        """Return another table in the same schema."""
        return Table(self.schema, name)

    def is_in(self, database: Transaction) -> bool:
        return database.has_table(self.schema, self.name)


def _sql(name: str) -> str:
    plain = re.fullmatch(r"[a-z_][a-z0-9_$]*", name)
    return name if plain else f'"{name}"'


def parse_table(dataset: str, text: str) -> Table:
    """Parse a table name; unquoted parts become lower case, as in SQL."""
    match = _NAME.fullmatch(text.strip())
    if match is None:
        raise TableNameError(dataset, text)
    schema, name = (None if part is None else _plain(part) for part in match.groups())
    return Table(schema, str(name))


def _plain(part: str) -> str:
    return part.strip('"') if part.startswith('"') else part.lower()


def staging_of(table: Table, tag: str) -> Table:
    """Return the table that a version is written to before it is published."""
    name = f"{table.name}__floe_{re.sub(r'[^a-z0-9]+', '_', tag.lower())}"
    if len(name) > LONGEST_NAME:
        # Databases truncate long names, so two versions could share a name.
        name = f"{name[:47]}_{hashlib.sha256(f'{table.name}{tag}'.encode()).hexdigest()[:12]}"
    return table.sibling(name)


def create_sqlite_table(database: Transaction, table: Table, schema: Any) -> None:
    """Create a table for a frame; Spark fails on SQLite's "no such table" message."""
    kinds = {"double": "REAL", "float": "REAL", "binary": "BLOB", "string": "TEXT"}
    kinds |= dict.fromkeys(("tinyint", "smallint", "int", "bigint", "boolean"), "INTEGER")
    columns = [
        f"{database.quote(field.name)} {kinds.get(field.dataType.simpleString(), 'DECIMAL')}"
        for field in schema.fields
    ]
    database.run(f"CREATE TABLE {table.sql} ({', '.join(columns)})")


def publish_staging(database: Transaction, version: StoredVersion, table: Table) -> None:
    """Publish a staged version, unless it is already published."""
    create_published_table(database, table)
    if is_published(database, table, version.tag):
        return
    staging = staging_of(table, version.tag)
    if not staging.is_in(database):
        raise VersionUnreadableError(version.dataset, version.tag, f"{staging.sql} is missing.")
    mode = str(version.details.get("mode", "replace"))
    _SWAPS[mode if table.is_in(database) else "replace"](database, version, table, staging)
    record_published(database, table, version.tag)


def _replace(database: Transaction, version: StoredVersion, table: Table, staging: Table) -> None:
    old = staging_of(table, f"{version.tag}_old")
    if table.is_in(database):
        database.run(f"ALTER TABLE {table.sql} RENAME TO {_sql(old.name)}")
    database.run(f"ALTER TABLE {staging.sql} RENAME TO {_sql(table.name)}")
    database.run(f"DROP TABLE IF EXISTS {old.sql}")


def _append(database: Transaction, version: StoredVersion, table: Table, staging: Table) -> None:
    columns = ", ".join(
        database.quote(name) for name in database.columns(staging.schema, staging.name)
    )
    rows = f"SELECT {columns} FROM {staging.sql}"  # noqa: S608
    database.run(f"INSERT INTO {table.sql} ({columns}) {rows}")
    database.run(f"DROP TABLE {staging.sql}")


def _overwrite(database: Transaction, version: StoredVersion, table: Table, staging: Table) -> None:
    delete_partition(database, version, table)
    _append(database, version, table, staging)


def delete_partition(database: Transaction, version: StoredVersion, table: Table) -> None:
    """Remove the rows of a version's partition."""
    column = database.quote(str(version.spec.partition_column))
    key = partition_value(version, database.dialect)
    database.run(f"DELETE FROM {table.sql} WHERE {column} = :key", key=key)  # noqa: S608


def _merge(database: Transaction, version: StoredVersion, table: Table, staging: Table) -> None:
    keys = [database.quote(name) for name in version.spec.keys]
    same = " AND ".join(f"s.{key} = {table.sql}.{key}" for key in keys)
    same_keys = f"SELECT 1 FROM {staging.sql} s WHERE {same}"  # noqa: S608
    database.run(f"DELETE FROM {table.sql} WHERE EXISTS ({same_keys})")  # noqa: S608
    _append(database, version, table, staging)


_SWAPS: Mapping[str, Callable[[Transaction, StoredVersion, Table, Table], None]] = {
    "replace": _replace,
    "append": _append,
    "overwrite_partition": _overwrite,
    "merge": _merge,
}


def partition_value(version: StoredVersion, dialect: str) -> Any:
    """Return the partition key of a version, converted to the type of its column."""
    types = {column.name: column.type.strip().lower() for column in version.spec.columns}
    kind = types.get(str(version.spec.partition_column), "string")
    if kind == "date" and dialect != "sqlite":
        return date.fromisoformat(version.key)
    return int(version.key) if kind.endswith("int") or kind == "long" else version.key


def check_keys(database: Transaction, version: StoredVersion, staging: Table) -> None:
    """Raise if rows to merge have duplicate keys."""
    keys = ", ".join(database.quote(name) for name in version.spec.keys)
    duplicates = database.fetch(
        f"SELECT {keys}, count(*) FROM {staging.sql} GROUP BY {keys} "  # noqa: S608
        "HAVING count(*) > 1"
    )
    if duplicates:
        raise DuplicateKeysError(version.dataset, version.spec.keys, duplicates)


def withdraw_version(database: Transaction, version: StoredVersion, table: Table) -> None:
    """Remove a published version from its table."""
    mode = str(version.details.get("mode", "replace"))
    if mode == "replace":
        staging = staging_of(table, version.tag)
        database.run(f"ALTER TABLE {table.sql} RENAME TO {_sql(staging.name)}")
    elif mode == "overwrite_partition":
        delete_partition(database, version, table)
    else:
        reason = f"rows written with '{mode}' cannot be told from the other rows of {table.sql}"
        raise VersionUnreadableError(version.dataset, version.tag, f"{reason}.")
    database.run(
        f"DELETE FROM {table.sibling(PUBLISHED).sql} WHERE table_name = :name AND tag = :tag",  # noqa: S608
        name=table.name,
        tag=version.tag,
    )


def create_published_table(database: Transaction, table: Table) -> None:
    """Create the table that lists the published versions, if it is missing."""
    published = table.sibling(PUBLISHED)
    if not published.is_in(database):
        database.run(
            f"CREATE TABLE {published.sql} (table_name varchar(200) NOT NULL, "
            "tag varchar(200) NOT NULL, seq bigint NOT NULL, published_at varchar(40) NOT NULL, "
            "PRIMARY KEY (table_name, tag))"
        )


def record_published(database: Transaction, table: Table, tag: str) -> None:
    """Record that a version was published to its table."""
    database.run(
        f"INSERT INTO {table.sibling(PUBLISHED).sql} (table_name, tag, seq, published_at) "  # noqa: S608
        f"VALUES (:name, :tag, :seq, :at)",
        name=table.name,
        tag=tag,
        seq=len(published_tags(database, table)) + 1,
        at=clock.now().isoformat(),
    )


def published_tags(database: Transaction, table: Table) -> list[str]:
    """Return the tags published to a table, newest last."""
    if not table.sibling(PUBLISHED).is_in(database):
        return []
    rows = database.fetch(
        f"SELECT tag FROM {table.sibling(PUBLISHED).sql} "  # noqa: S608
        "WHERE table_name = :name ORDER BY seq",
        name=table.name,
    )
    return [str(tag) for (tag,) in rows]


def is_published(database: Transaction, table: Table, tag: str) -> bool:
    """Tell whether a version is published."""
    return tag in published_tags(database, table)


def count_rows(database: Transaction, table: Table) -> int:
    """Count the rows of a table."""
    return int(database.fetch(f"SELECT count(*) FROM {table.sql}")[0][0])  # noqa: S608


def jdbc_options(version: StoredVersion) -> JdbcOptions:
    """Return the jdbc options of a version's dataset."""
    return cast("JdbcOptions", version.spec.format_options)


def is_sqlite(site: Site, version: StoredVersion) -> bool:
    """Tell whether a dataset is stored in SQLite, which types values, not columns."""
    return jdbc_address(site, jdbc_options(version).connection).startswith("jdbc:sqlite:")


def connection_settings(site: Site, version: StoredVersion) -> dict[str, str]:
    """Return Spark's connection options; user and password never go into the URL."""
    name = jdbc_options(version).connection
    connection, address = site.connection(name), jdbc_address(site, name)
    known = next((driver for kind, driver in DRIVERS.items() if address.startswith(kind)), None)
    settings: dict[str, Any] = {
        "url": address,
        "driver": connection.driver or known,
        "user": connection.user,
        "password": connection.password and site.reveal(connection.password),
        **{key: site.reveal(value) for key, value in connection.options.items()},
    }
    return {key: str(value) for key, value in settings.items() if value is not None}


def source_of(site: Site, version: StoredVersion) -> str:
    """Return the table of a dataset, or its query as a subquery for FROM."""
    options = jdbc_options(version)
    if options.query is None:
        return str(options.table)
    return f"({site.read_text(options.query).strip().rstrip(';')}) floe_extract"


def read_source(
    site: Site, spark: "SparkSession", version: StoredVersion, source: str
) -> "DataFrame":
    """Read a table or a query."""
    settings = {
        **connection_settings(site, version),
        **_read_limits(jdbc_options(version)),
        **_partitioning(site, spark, version, source),
    }
    if is_sqlite(site, version) and version.spec.columns:
        # The SQLite driver guesses types from the first row, and fails on dates stored as text.
        names = ", ".join(f"`{name}` string" for name in version.spec.column_names)
        settings["customSchema"] = names
    frame = spark.read.format("jdbc").options(**settings, dbtable=source).load()
    return _as_declared(frame, version)


def _read_limits(options: JdbcOptions) -> dict[str, str]:
    pace = {"fetchsize": str(options.fetch_size)}
    if options.query_timeout_seconds is not None:
        pace["queryTimeout"] = str(options.query_timeout_seconds)
    return pace


def _partitioning(
    site: Site, spark: "SparkSession", version: StoredVersion, source: str
) -> Mapping[str, str]:
    """Return how Spark splits a read; missing bounds are queried from the database."""
    options = jdbc_options(version)
    if options.partition_column is None:
        return {}
    low, high = options.lower_bound, options.upper_bound
    if low is None or high is None:
        least, most = _bounds(site, spark, version, source, options.partition_column)
        low, high = (least if low is None else low), (most if high is None else high)
    if low is None or high is None:
        # No rows, or only nulls: nothing to split.
        return {}
    return {
        "partitionColumn": options.partition_column,
        "lowerBound": low,
        "upperBound": high,
        "numPartitions": str(options.num_partitions or DEFAULT_PARTITIONS),
    }


def _bounds(
    site: Site, spark: "SparkSession", version: StoredVersion, source: str, column: str
) -> tuple[str | None, str | None]:
    bounds_query = f"(SELECT min({column}) AS low, max({column}) AS high FROM {source}) floe_bounds"  # noqa: S608
    settings = {**connection_settings(site, version), **_read_limits(jdbc_options(version))}
    bounds = spark.read.format("jdbc").options(**settings, dbtable=bounds_query).load().collect()[0]
    low, high = (None if value is None else str(value) for value in (bounds[0], bounds[1]))
    return low, high


def _as_declared(frame: "DataFrame", version: StoredVersion) -> "DataFrame":
    columns = version.spec.columns
    if not columns:
        return frame
    wanted = [column.name.lower() for column in columns]
    names = [name for name in frame.columns if name.lower() in wanted]
    if difference := column_difference([column.name for column in columns], names):
        reason = f"its columns differ from the schema: {difference}."
        raise DeliveryRejectedError(version.dataset, reason)
    return frame.select(
        *(frame[column.name].cast(column.type).alias(column.name) for column in columns)
    )
