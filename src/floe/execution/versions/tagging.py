"""Versions of tables that others write straight to main, as dbt does: tagged afterwards."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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


def tag_main(
    site: Site, spark: "SparkSession", dataset: str, tags: Iterable[str]
) -> tuple[Shown, list[str]]:
    """Tag what main shows; return it, and the tags that were given.

    A number that the lake has already given away is not given twice: the next one is taken.
    """
    table = LakeTable.of(site.platform.lake.name, dataset)
    given = [_tag(spark, table, tag) for tag in tags]
    return _shown(spark, table), given


def shown_versions(site: Site, spark: "SparkSession", datasets: Iterable[str]) -> dict[str, str]:
    """Return the version that each table's main branch shows, where it has a tag."""
    shown = {}
    for dataset in datasets:
        tags = references(spark, LakeTable.of(site.platform.lake.name, dataset))
        main = tags.pop(MAIN, None)
        fitting = [tag for tag, snapshot in tags.items() if snapshot == main and _number(tag)]
        if fitting:
            shown[dataset] = max(fitting, key=_number)
    return shown


def _tag(spark: "SparkSession", table: LakeTable, tag: str) -> str:
    from pyspark.errors import PySparkException

    try:
        _create_tag(spark, table, tag)
    except PySparkException:
        free = _next_free(tag, references(spark, table))
        if free == tag:
            raise
        _create_tag(spark, table, free)
        return free
    return tag


def _create_tag(spark: "SparkSession", table: LakeTable, tag: str) -> None:
    spark.sql(f"ALTER TABLE {table.sql} CREATE TAG {quoted(tag)}").collect()


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


def _shown(spark: "SparkSession", table: LakeTable) -> Shown:
    rows = query(
        spark,
        f"SELECT s.snapshot_id, s.summary FROM {table.sql}.snapshots s "  # noqa: S608
        f"JOIN {table.sql}.refs r ON s.snapshot_id = r.snapshot_id WHERE r.name = {text(MAIN)}",
    ).collect()
    summary: dict[str, Any] = rows[0].summary
    counted = {name: summary.get(name) for name in ("total-records", "total-files-size")}
    total, size = (None if value is None else int(value) for value in counted.values())
    return Shown(str(rows[0].snapshot_id), total, size)
