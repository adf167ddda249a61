"""Tag versions of tables that are written directly to main, as dbt does."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.schemas import Column
from floe.execution.formats.lake_tables import (
    MAIN,
    LakeTable,
    TableState,
    quoted,
    read_table_state,
    references,
    text,
)
from floe.execution.site import Site
from floe.execution.spark.queries import query
from floe.spec.identity import VersionTagError, parse_version_tag, version_tag

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True)
class MainState:
    """The state of a table's main branch."""

    snapshot: str
    rows: int | None
    size: int | None
    columns: Sequence[Column]


def tag_main(
    site: Site, spark: "SparkSession", dataset: str, tags: Iterable[str]
) -> tuple[MainState, list[str]]:
    """Tag the snapshot on main; return its state, and the tags that were created.

    If a tag already exists in the lake, the next free sequence number is used.
    """
    table = LakeTable.of(site.platform.lake.name, dataset)
    given = [_tag(spark, table, tag) for tag in tags]
    return _main_state(site, spark, table), given


def versions_on_main(site: Site, spark: "SparkSession", datasets: Iterable[str]) -> dict[str, str]:
    """Return the tag of the version on each table's main branch, if it has one."""
    shown = {}
    for dataset, tags in _all_references(site, spark, list(datasets)).items():
        main = tags.pop(MAIN, None)
        fitting = [tag for tag, snapshot in tags.items() if snapshot == main and _sequence(tag)]
        if fitting:
            shown[dataset] = max(fitting, key=_sequence)
    return shown


def _all_references(
    site: Site, spark: "SparkSession", datasets: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the branches and tags of tables from the lake's files, else from Spark."""
    tables = {dataset: LakeTable.of(site.platform.lake.name, dataset) for dataset in datasets}
    states = {dataset: read_table_state(site, table) for dataset, table in tables.items()}
    asked = {dataset: tables[dataset] for dataset, state in states.items() if state is None}
    read = {name: dict(state.references) for name, state in states.items() if state is not None}
    return read | _ask_references(spark, asked)


def _ask_references(
    spark: "SparkSession", tables: Mapping[str, LakeTable]
) -> dict[str, dict[str, str]]:
    """Query branches and tags of all tables at once; one by one if a table is missing."""
    from pyspark.errors import AnalysisException

    each = [
        f"SELECT {text(dataset)} AS dataset, name, snapshot_id FROM {table.sql}.refs"  # noqa: S608
        for dataset, table in tables.items()
    ]
    try:
        rows = query(spark, " UNION ALL ".join(each)).collect() if each else []
    except AnalysisException:
        return {dataset: references(spark, table) for dataset, table in tables.items()}
    by_dataset: dict[str, dict[str, str]] = {dataset: {} for dataset in tables}
    for row in rows:
        by_dataset[row.dataset][row.name] = str(row.snapshot_id)
    return by_dataset


def _tag(spark: "SparkSession", table: LakeTable, tag: str) -> str:
    from pyspark.errors import PySparkException

    try:
        _create_tag(spark, table, tag)
    except PySparkException:
        existing = references(spark, table)
        free = _next_free(tag, existing)
        if MAIN not in existing:
            _commit_nothing(spark, table)
        elif free == tag:
            raise
        _create_tag(spark, table, free)
        return free
    return tag


def _commit_nothing(spark: "SparkSession", table: LakeTable) -> None:
    """Create an empty snapshot on a table that was never written: a tag needs one."""
    spark.sql(f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE false")  # noqa: S608


def _create_tag(spark: "SparkSession", table: LakeTable, tag: str) -> None:
    # Not collected: the call has already run it, and collecting would be another request.
    spark.sql(f"ALTER TABLE {table.sql} CREATE TAG {quoted(tag)}")


def _next_free(tag: str, taken: Iterable[str]) -> str:
    key, wanted = parse_version_tag(tag)
    used = [sequence for name in taken for sequence in _sequences_of(key, name)]
    return version_tag(key, max([wanted - 1, *used]) + 1)


def _sequences_of(key: str, name: str) -> Iterator[int]:
    try:
        tag_key, sequence = parse_version_tag(name)
    except VersionTagError:
        return
    if tag_key == key:
        yield sequence


def _sequence(tag: str) -> int:
    try:
        return parse_version_tag(tag)[1]
    except VersionTagError:
        return 0


def _main_state(site: Site, spark: "SparkSession", table: LakeTable) -> MainState:
    state = read_table_state(site, table) or _ask_state(spark, table)
    main = state.references[MAIN]
    summary = state.summaries[main]
    counted = (summary.get(name) for name in ("total-records", "total-files-size"))
    total, size = (None if value is None else int(value) for value in counted)
    return MainState(main, total, size, state.columns)


def _ask_state(spark: "SparkSession", table: LakeTable) -> TableState:
    # Combined in Python: a join in Spark takes twice as long.
    rows = query(
        spark,
        f"SELECT name, snapshot_id, NULL AS summary FROM {table.sql}.refs "  # noqa: S608
        f"UNION ALL SELECT NULL, snapshot_id, summary FROM {table.sql}.snapshots",
    ).collect()
    return TableState(
        {row.name: str(row.snapshot_id) for row in rows if row.name is not None},
        {str(row.snapshot_id): row.summary for row in rows if row.name is None},
        [
            Column(field.name, field.dataType.simpleString(), field.nullable)
            for field in spark.table(table.sql).schema.fields
        ],
    )
