"""Vacuum on a real lake and on files: what it removes, keeps, and repeats after a kill."""

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from floe import clock
from floe.catalog.datasets import get_dataset
from floe.catalog.runs import SUCCESS, finish_run, get_run
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import reserve_version
from floe.execution import faults
from floe.execution.formats.lake_tables import LakeTable, references
from floe.execution.maintenance.sweep import VacuumOptions, VacuumReport, vacuum_datasets
from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.retractions import retract
from floe.execution.workspace import Workspace
from tests.execution.maintenance.factory import (
    MONDAY,
    TUESDAY,
    age,
    make_version,
    new_name,
    opened,
    project,
    read,
    read_by_a_run,
    shown,
    state_of,
)

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]

NOTHING_LASTS = timedelta(0)


def vacuum(
    workspace: Workspace, name: str, *, retain: timedelta | None = None, dry_run: bool = False
) -> VacuumReport:
    order = VacuumOptions(retain, dry_run=dry_run, actor="ann")
    return vacuum_datasets(workspace, SparkSessions(workspace.site), [name], order)


def gone(report: VacuumReport, kind: str = "version") -> list[str]:
    assert not report.failed
    return [item.name for item in report.items if item.kind == kind]


def data_files(spark: "SparkSession", workspace: Workspace, name: str) -> set[str]:
    table = LakeTable.of(workspace.lake, name).sql
    rows = spark.sql(f"SELECT DISTINCT file_path FROM {table}.all_files").collect()
    return {row.file_path for row in rows}


def on_disk(paths: set[str]) -> set[str]:
    return {path for path in paths if Path(path.removeprefix("file:")).is_file()}


def test_a_dry_run_lists_exactly_what_a_vacuum_then_removes(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        before = data_files(spark, workspace, name)
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        third = make_version(workspace, spark, name, TUESDAY, [(3, "b")])
        would = vacuum(workspace, name, retain=NOTHING_LASTS, dry_run=True)
        assert gone(would) == [first]
        assert len(gone(would, "snapshot")) == 1
        assert state_of(workspace, name, first) == "SUPERSEDED"
        assert on_disk(before) == before
        size = sum(Path(path.removeprefix("file:")).stat().st_size for path in before)
        assert would.freed == size
        did = vacuum(workspace, name, retain=NOTHING_LASTS)
        assert did.items == would.items
        assert on_disk(before) == set()
        assert state_of(workspace, name, first) == "VACUUMED"
        assert set(references(spark, LakeTable.of("lake", name))) == {"main", second, third}
        assert read(workspace, spark, name, second).count() == 1
        assert shown(workspace, spark, name) == [3]
        assert vacuum(workspace, name, retain=NOTHING_LASTS).items == []


def test_a_version_on_hold_or_being_read_is_kept(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        tags = [make_version(workspace, spark, name, MONDAY, [(n, "a")]) for n in range(4)]
        held, in_use, free, _ready = tags
        with workspace.catalog.writing() as session:
            version = get_version_of(session, workspace.dataset_id(name), held)
            version.legal_hold = True
        run_id = read_by_a_run(workspace, name, in_use)
        report = vacuum(workspace, name, retain=NOTHING_LASTS)
        assert gone(report) == [free]
        assert [(item.name, item.reason) for item in report.kept] == [
            (held, "legal hold"),
            (in_use, f"run {run_id} reads it"),
        ]
        assert [row.id for row in read(workspace, spark, name, in_use).collect()] == [1]
        with workspace.catalog.writing() as session:
            finish_run(session, get_run(session, run_id), SUCCESS)
        assert gone(vacuum(workspace, name, retain=NOTHING_LASTS)) == [in_use]
        assert [row.id for row in read(workspace, spark, name, held).collect()] == [0]


def test_nothing_of_a_dataset_under_legal_hold_is_removed(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    declared = project(name, legal_hold={"reason": "case 12"})
    with opened(spark_site, declared, tmp_path) as workspace:
        for order_id in (1, 2):
            make_version(workspace, spark, name, MONDAY, [(order_id, "a")])
        report = vacuum(workspace, name, retain=NOTHING_LASTS)
        assert report.items == []
        assert [item.reason for item in report.kept] == ["legal hold: case 12"]


def test_the_declared_retention_applies_unless_overridden(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    declared = project(name, retention={"age": "7d", "versions": 2})
    with opened(spark_site, declared, tmp_path) as workspace:
        tags = [make_version(workspace, spark, name, MONDAY, [(n, "a")]) for n in range(4)]
        for tag in tags[:3]:
            age(workspace, name, tag, days=8 if tag == tags[0] else 6)
        # Of four, one is READY and one more stays by its number.
        assert gone(vacuum(workspace, name, dry_run=True)) == [tags[0]]
        assert gone(vacuum(workspace, name, retain=NOTHING_LASTS)) == tags[:2]


def test_a_retracted_version_is_removed_and_the_shown_one_stays(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        sparks = SparkSessions(workspace.site)
        retract(workspace, sparks, name, second, reason="wrong", actor="ann")
        assert gone(vacuum(workspace, name, retain=NOTHING_LASTS)) == [second]
        assert shown(workspace, spark, name) == [1]
        assert state_of(workspace, name, first) == "READY"


def test_an_unused_branch_is_removed_and_one_in_use_stays(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    table = LakeTable.of("lake", name)
    with opened(spark_site, project(name), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        with workspace.catalog.writing() as session:
            note: dict[str, Any] = {"floe": {"branch": "floe_used"}}
            reserve_version(session, workspace.dataset_id(name), MONDAY, metadata_json=note)
        for branch in ("floe_left", "floe_used", "mine"):
            spark.sql(f"ALTER TABLE {table.sql} CREATE BRANCH {branch}").collect()
        assert gone(vacuum(workspace, name, dry_run=True), "branch") == ["floe_left"]
        assert gone(vacuum(workspace, name), "branch") == ["floe_left"]
        assert set(references(spark, table)) == {"main", tag, "floe_used", "mine"}


def test_an_orphan_file_is_removed_after_a_day(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        make_version(workspace, spark, name, MONDAY, [(1, "a")])
        (known,) = data_files(spark, workspace, name)
        folder = Path(known.removeprefix("file:")).parent
        left, young = folder / "left.parquet", folder / "young.parquet"
        for file in (left, young):
            file.write_bytes(b"12345")
        long_ago = (clock.now() - timedelta(days=3)).timestamp()
        os.utime(left, (long_ago, long_ago))
        would = vacuum(workspace, name, dry_run=True)
        assert [Path(path).name for path in gone(would, "file")] == ["left.parquet"]
        assert would.freed == 5
        vacuum(workspace, name)
        assert (left.exists(), young.exists(), on_disk({known})) == (False, True, {known})


def test_directories_are_removed_with_their_versions(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name("feed")
    declared = project(name, format="parquet", location=f"out/{name}/{{business_date}}")
    with opened(spark_site, declared, tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        home = spark_site.root / "out" / name / str(MONDAY)
        size = sum(file.stat().st_size for file in (home / first).rglob("*") if file.is_file())
        would = vacuum(workspace, name, retain=NOTHING_LASTS, dry_run=True)
        assert (gone(would), would.freed) == ([first], size)
        did = vacuum(workspace, name, retain=NOTHING_LASTS)
        assert did.items == would.items
        assert [folder.name for folder in home.iterdir()] == [second]


def test_an_unknown_directory_is_removed_after_a_day(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name("feed")
    declared = project(name, format="parquet", location=f"out/{name}")
    with opened(spark_site, declared, tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        home = spark_site.root / "out" / name
        stray = home / f"{MONDAY}.7"
        stray.mkdir()
        (stray / "part.parquet").write_bytes(b"1234567")
        with workspace.catalog.writing() as session:
            dataset = get_dataset(session, workspace.dataset_id(name))
            dataset.created_at = clock.now() - timedelta(days=9)
        long_ago = (clock.now() - timedelta(days=3)).timestamp()
        for folder in (stray, home / tag):
            os.utime(folder, (long_ago, long_ago))
        report = vacuum(workspace, name)
        assert (gone(report, "folder"), report.freed) == ([str(stray)], 7)
        assert [folder.name for folder in home.iterdir()] == [tag]


def test_a_killed_vacuum_can_be_repeated(
    spark_site: Site, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class KilledError(BaseException):
        pass

    def killed(name: str) -> None:
        if name == "vacuumed":
            raise KilledError

    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        make_version(workspace, spark, name, MONDAY, [(2, "a")])
        with monkeypatch.context() as patched:
            patched.setattr(faults, "point", killed)
            with pytest.raises(KilledError):
                vacuum(workspace, name, retain=NOTHING_LASTS)
        assert state_of(workspace, name, first) == "SUPERSEDED"
        assert gone(vacuum(workspace, name, retain=NOTHING_LASTS)) == [first]
        assert state_of(workspace, name, first) == "VACUUMED"
        assert shown(workspace, spark, name) == [2]
