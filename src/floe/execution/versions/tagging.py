"""Versions of tables that others write straight to main, as dbt does: tagged afterwards."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from floe.catalog.schemas import Column
from floe.execution.formats.iceberg.metadata import TableState, read_state
from floe.execution.formats.iceberg.tables import MAIN, LakeTable, quoted, references, text
from floe.execution.site import Site
from floe.execution.spark.queries import query
from floe.spec.identity import VersionTagError, parse_version_tag, version_tag

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession


@dataclass(frozen=True)
class Shown:
    """What the main branch of a table shows."""

    snapshot: str
    rows: int | None
    size: int | None
    columns: Sequence[Column]


def tag_main(
    site: Site, spark: "SparkSession", dataset: str, tags: Iterable[str]
) -> tuple[Shown, list[str]]:
    """Tag what main shows; return it, and the tags that were given.

    A number that the lake has already given away is not given twice: the next one is taken.
    """
    table = LakeTable.of(site.platform.lake.name, dataset)
    given = [_tag(spark, table, tag) for tag in tags]
    return _shown(site, spark, table), given


def shown_versions(site: Site, spark: "SparkSession", datasets: Iterable[str]) -> dict[str, str]:
    """Return the version that each table's main branch shows, where it has a tag."""
    shown = {}
    for dataset, tags in _all_references(site, spark, list(datasets)).items():
        main = tags.pop(MAIN, None)
        fitting = [tag for tag, snapshot in tags.items() if snapshot == main and _number(tag)]
        if fitting:
            shown[dataset] = max(fitting, key=_number)
    return shown


def _all_references(
    site: Site, spark: "SparkSession", datasets: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the branches and tags of tables: from the lake's files, or else from Spark."""
    tables = {dataset: LakeTable.of(site.platform.lake.name, dataset) for dataset in datasets}
    states = {dataset: read_state(site, table) for dataset, table in tables.items()}
    asked = {dataset: tables[dataset] for dataset, state in states.items() if state is None}
    read = {name: dict(state.references) for name, state in states.items() if state is not None}
    return read | _ask_references(spark, asked)


def _ask_references(
    spark: "SparkSession", tables: Mapping[str, LakeTable]
) -> dict[str, dict[str, str]]:
    """Ask for the branches and tags by one query, unless a table is missing."""
    from pyspark.errors import AnalysisException

    each = [
        f"SELECT {text(dataset)} AS dataset, name, snapshot_id FROM {table.sql}.refs"  # noqa: S608
        for dataset, table in tables.items()
    ]
    try:
        rows = query(spark, " UNION ALL ".join(each)).collect() if each else []
    except AnalysisException:
        return {dataset: references(spark, table) for dataset, table in tables.items()}
    found: dict[str, dict[str, str]] = {dataset: {} for dataset in tables}
    for row in rows:
        found[row.dataset][row.name] = str(row.snapshot_id)
    return found


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
    """Give a table that was created and never written a snapshot: a tag needs one."""
    spark.sql(f"INSERT INTO {table.sql} SELECT * FROM {table.sql} WHERE false")  # noqa: S608


def _create_tag(spark: "SparkSession", table: LakeTable, tag: str) -> None:
    # Not collected: it is done when the call returns, and its answer would be one more.
    spark.sql(f"ALTER TABLE {table.sql} CREATE TAG {quoted(tag)}")


def _next_free(tag: str, taken: Iterable[str]) -> str:
    key, number = parse_version_tag(tag)
    numbers = [found for name in taken for found in _numbers_of(key, name)]
    return version_tag(key, max([number - 1, *numbers]) + 1)


def _numbers_of(key: str, name: str) -> Iterator[int]:
    try:
        found, number = parse_version_tag(name)
    except VersionTagError:
        return
    if found == key:
        yield number


def _number(tag: str) -> int:
    try:
        return parse_version_tag(tag)[1]
    except VersionTagError:
        return 0


def _shown(site: Site, spark: "SparkSession", table: LakeTable) -> Shown:
    state = read_state(site, table) or _ask_state(spark, table)
    main = state.references[MAIN]
    summary = state.summaries[main]
    counted = (summary.get(name) for name in ("total-records", "total-files-size"))
    total, size = (None if value is None else int(value) for value in counted)
    return Shown(main, total, size, state.columns)


def _ask_state(spark: "SparkSession", table: LakeTable) -> TableState:
    # Put together here: to join the two takes Spark twice as long.
    rows = query(
        spark,
        f"SELECT name, snapshot_id, NULL AS summary FROM {table.sql}.refs "  # noqa: S608
        f"UNION ALL SELECT NULL, snapshot_id, summary FROM {table.sql}.snapshots",
    ).collect()
    return TableState(
        {row.name: str(row.snapshot_id) for row in rows if row.name is not None},
        {str(row.snapshot_id): row.summary for row in rows if row.name is None},
        [
            Column(one.name, one.dataType.simpleString(), one.nullable)
            for one in spark.table(table.sql).schema.fields
        ],
    )
