"""Iceberg tables: their names in SQL, branches, tags and columns."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from floe.catalog.schemas import Column
from floe.execution.formats.contract import StoredVersion
from floe.execution.site import Site
from floe.execution.spark.lake_catalog import lake_file
from floe.spec.formats import IcebergOptions
from floe.spec.identity import lake_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.connect.session import SparkSession

MAIN = "main"

SPARK_TYPES = {
    "long": "bigint",
    "timestamptz": "timestamp",
    "timestamp": "timestamp_ntz",
    "uuid": "string",
}

READ_ATTEMPTS = 3
"""Attempts to read the metadata file, which a writer may replace meanwhile."""
LOCATION = """
    SELECT metadata_location FROM iceberg_tables
    WHERE catalog_name = ? AND table_namespace = ? AND table_name = ?
"""

CREATE_ATTEMPTS = 3
WIDER = {("int", "bigint"), ("float", "double")}

Columns = Sequence[tuple[str, str]]


def quoted(name: str) -> str:
    """Quote a name as a SQL identifier."""
    return "`" + name.replace("`", "``") + "`"


def text(value: str) -> str:
    """Quote a text as a SQL literal."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


@dataclass(frozen=True)
class LakeTable:
    """The table of a dataset: `credit.exposure` is `lake.credit.exposure`."""

    lake: str
    parts: tuple[str, ...]

    @classmethod
    def of(cls, lake: str, dataset: str) -> "LakeTable":
        return cls(lake, lake_table(dataset))

    @property
    def sql(self) -> str:
        """The quoted name of the table in SQL statements."""
        return ".".join(map(quoted, (self.lake, *self.parts)))

    @property
    def namespace(self) -> str:
        return ".".join(map(quoted, (self.lake, *self.parts[:-1])))

    @property
    def argument(self) -> str:
        """The table as an argument of the lake's procedures."""
        return text(".".join(map(quoted, self.parts)))

    def procedure(self, name: str, *arguments: str) -> str:
        """Return the SQL that calls a procedure of the lake on this table."""
        return f"CALL {quoted(self.lake)}.system.{name}({', '.join((self.argument, *arguments))})"

    def at(self, snapshot: str) -> str:
        """Return the query that reads the table at a snapshot."""
        return f"SELECT * FROM {self.sql} VERSION AS OF {int(snapshot)}"  # noqa: S608

    def on(self, branch: str) -> str:
        """Return the query that reads the table on a branch."""
        return f"SELECT * FROM {self.sql} VERSION AS OF {text(branch)}"  # noqa: S608


def references(spark: "SparkSession", table: LakeTable) -> dict[str, str]:
    """Return the snapshots of a table's branches and tags; empty without a table."""
    if not spark.catalog.tableExists(table.sql):
        return {}
    rows = spark.sql(f"SELECT name, snapshot_id FROM {table.sql}.refs").collect()  # noqa: S608
    return {row.name: str(row.snapshot_id) for row in rows}


def run_script(spark: "SparkSession", statements: Sequence[str]) -> None:
    """Run statements in order, in one call to the server."""
    # Not collected: the script has run when the call returns; collecting costs another call.
    body = "\n".join(f"EXECUTE IMMEDIATE {text(statement)};" for statement in statements)
    spark.sql(f"BEGIN\n{body}\nEND")


def spark_type(kind: str | Mapping[str, Any]) -> str:
    """Convert a type from Iceberg's metadata to the name that Spark uses."""
    if isinstance(kind, str):
        name = kind.replace(" ", "")
        return "binary" if name.startswith("fixed[") else SPARK_TYPES.get(name, name)
    match kind["type"]:
        case "list":
            return f"array<{spark_type(kind['element'])}>"
        case "map":
            return f"map<{spark_type(kind['key'])},{spark_type(kind['value'])}>"
        case _:
            fields = (f"{field['name']}:{spark_type(field['type'])}" for field in kind["fields"])
            return f"struct<{','.join(fields)}>"


@dataclass(frozen=True)
class TableState:
    """The references, snapshot summaries and columns of a table."""

    references: Mapping[str, str]
    summaries: Mapping[str, Mapping[str, str]]
    columns: Sequence[Column]


def read_table_state(site: Site, table: LakeTable) -> TableState | None:
    """Read the state of a table without Spark; None if only Spark can read it."""
    lake = lake_file(site)
    if lake is None or not lake.exists():
        return None
    for _ in range(READ_ATTEMPTS):
        file = _metadata_file(lake, table)
        if file is None:
            return None
        try:
            return _state(json.loads(file.read_bytes()))
        except FileNotFoundError:
            continue
    return None


def _metadata_file(lake: Path, table: LakeTable) -> Path | None:
    names = (table.lake, ".".join(table.parts[:-1]), table.parts[-1])
    try:
        with closing(sqlite3.connect(f"{lake.as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(LOCATION, names).fetchone()
    except sqlite3.OperationalError:
        # Iceberg has not created its tables yet, or the file cannot be opened: leave it to Spark.
        return None
    location = "" if row is None else row[0].removeprefix("file:")
    plain = location.startswith("/") and ".gz." not in location
    return Path(location) if plain else None


def _state(metadata: Mapping[str, Any]) -> TableState | None:
    if "refs" not in metadata:
        # Written by an Iceberg version without branches and tags.
        return None
    current = metadata["current-schema-id"]
    schema = next(schema for schema in metadata["schemas"] if schema["schema-id"] == current)
    return TableState(
        {name: str(ref["snapshot-id"]) for name, ref in metadata["refs"].items()},
        {
            str(snapshot["snapshot-id"]): snapshot.get("summary", {})
            for snapshot in metadata["snapshots"]
        },
        [
            Column(field["name"], spark_type(field["type"]), not field["required"])
            for field in schema["fields"]
        ],
    )


def fit_table(
    spark: "SparkSession", table: LakeTable, version: StoredVersion, frame: "DataFrame"
) -> "DataFrame":
    """Create or alter the table; return the frame with all columns of the table."""
    wanted = columns_of(frame)
    actual = _columns_of_table(spark, table)
    if actual is None:
        _create(spark, table, version, wanted)
        return frame
    for change in changes(actual, wanted):
        spark.sql(f"ALTER TABLE {table.sql} {change}").collect()
    return _completed(frame, actual, wanted)


def columns_of(frame: "DataFrame") -> list[tuple[str, str]]:
    """Return the names and types of a frame's columns."""
    return [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]


def changes(actual: Columns, wanted: Columns) -> Iterator[str]:
    """Yield the ALTER TABLE changes that are needed to write these columns."""
    known = {name.lower(): kind for name, kind in actual}
    for name, kind in wanted:
        before = known.get(name.lower())
        if before is None:
            yield f"ADD COLUMN {quoted(name)} {kind}"
        elif before != kind and is_wider(before, kind):
            yield f"ALTER COLUMN {quoted(name)} TYPE {kind}"
        elif before != kind:
            # A new column under the old name; earlier snapshots keep the old column.
            yield f"DROP COLUMN {quoted(name)}"
            yield f"ADD COLUMN {quoted(name)} {kind}"


def is_wider(before: str, after: str) -> bool:
    """Tell whether the second type can hold every value of the first."""
    if (before, after) in WIDER:
        return True
    old, new = _decimal(before), _decimal(after)
    return old is not None and new is not None and old[1] == new[1] and old[0] < new[0]


def _decimal(kind: str) -> tuple[int, int] | None:
    if not kind.startswith("decimal("):
        return None
    precision, scale = kind.removeprefix("decimal(").rstrip(")").split(",")
    return int(precision), int(scale)


def _columns_of_table(spark: "SparkSession", table: LakeTable) -> Columns | None:
    from pyspark.errors import AnalysisException

    try:
        return columns_of(spark.table(table.sql))
    except AnalysisException as error:
        if error.getCondition() in ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND"):
            return None
        raise


def _create(
    spark: "SparkSession", table: LakeTable, version: StoredVersion, columns: Columns
) -> None:
    options = version.spec.format_options
    assert isinstance(options, IcebergOptions)
    listed = ", ".join(f"{quoted(name)} {kind}" for name, kind in columns)
    parts = [*options.partition_by]
    if version.spec.partition_column is not None:
        parts.insert(0, quoted(version.spec.partition_column))
    split = f" PARTITIONED BY ({', '.join(parts)})" if parts else ""
    properties = {"write.wap.enabled": "true", **options.properties}
    assignments = ", ".join(f"{text(key)} = {text(value)}" for key, value in properties.items())
    _create_namespace(spark, table)
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {table.sql} ({listed}) USING iceberg{split} "
        f"TBLPROPERTIES ({assignments})"
    ).collect()


def _create_namespace(spark: "SparkSession", table: LakeTable) -> None:
    from pyspark.errors import PySparkException

    for attempt in range(1, CREATE_ATTEMPTS + 1):
        try:
            spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {table.namespace}").collect()
        except PySparkException:
            # When two runs create it at once, the catalog rejects the second.
            if attempt == CREATE_ATTEMPTS:
                raise
        else:
            return


def _completed(frame: "DataFrame", actual: Columns, wanted: Columns) -> "DataFrame":
    """Add the columns that only the table has, filled with nulls."""
    from pyspark.sql import functions as F  # noqa: N812 - the usual alias for Spark functions

    present = {name.lower() for name, _ in wanted}
    for name, kind in actual:
        if name.lower() not in present:
            frame = frame.withColumn(name, F.lit(None).cast(kind))
    return frame
