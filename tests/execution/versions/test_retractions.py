"""Retracting versions on a real lake, also after a kill between the two steps."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.testclient import TestClient

from floe.api import create_app
from floe.catalog.audit import list_audit
from floe.catalog.stable_names import PENDING, details_of
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import reserve_version
from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.retractions import (
    AlreadyRetractedError,
    Retraction,
    RetractionUnfinishedError,
    finish_retractions,
    retract,
)
from floe.execution.workspace import Workspace
from tests.execution.maintenance.factory import (
    MONDAY,
    TUESDAY,
    WEDNESDAY,
    make_version,
    new_name,
    opened,
    project,
    shown,
    site_of,
    state_of,
)

if TYPE_CHECKING:
    from pyspark.sql.connect.session import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow]


def take_back(workspace: Workspace, dataset: str, tag: str) -> Retraction:
    sparks = SparkSessions(workspace.site)
    return retract(workspace, sparks, dataset, tag, reason="wrong prices", actor="ann")


def test_the_previous_version_is_ready_and_shown_again(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        done = take_back(workspace, name, second)
        assert done == Retraction(name, second, first, was_shown=True, shows=first)
        assert shown(workspace, spark, name) == [1]
        assert state_of(workspace, name, second) == "RETRACTED"
        assert state_of(workspace, name, first) == "READY"


def test_without_a_previous_version_of_the_date_the_newest_date_is_shown(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        monday = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        tuesday = make_version(workspace, spark, name, TUESDAY, [(2, "b")])
        assert take_back(workspace, name, tuesday).shows == monday
        assert shown(workspace, spark, name) == [1]
        assert take_back(workspace, name, monday).shows is None
        assert shown(workspace, spark, name) == []


def test_retracting_an_older_date_does_not_change_the_stable_name(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        monday = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        make_version(workspace, spark, name, TUESDAY, [(2, "b")])
        assert take_back(workspace, name, monday) == Retraction(name, monday)
        assert shown(workspace, spark, name) == [2]


def test_only_the_retracted_partition_of_a_table_changes(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    declared = project(name, partition_column="day")
    days = {day: day.isoformat() for day in (MONDAY, TUESDAY)}
    with opened(spark_site, declared, tmp_path) as workspace:
        for day, ids in ((MONDAY, (1, 2)), (MONDAY, (3,)), (TUESDAY, (4,))):
            rows = [(retraction, days[day]) for retraction in ids]
            make_version(workspace, spark, name, day, rows, mode="overwrite_partition")
        assert shown(workspace, spark, name) == [3, 4]
        assert take_back(workspace, name, f"{MONDAY}.2").shows == f"{MONDAY}.1"
        assert shown(workspace, spark, name) == [1, 2, 4]
        assert take_back(workspace, name, f"{TUESDAY}.1").shows is None
        assert shown(workspace, spark, name) == [1, 2]


def test_only_the_last_append_can_be_removed_from_the_table(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        for order_id, day in enumerate((TUESDAY, WEDNESDAY, MONDAY), start=1):
            make_version(workspace, spark, name, day, [(order_id, "a")], mode="append")
        assert take_back(workspace, name, f"{TUESDAY}.1").carried_by == (
            f"{WEDNESDAY}.1",
            f"{MONDAY}.1",
        )
        assert shown(workspace, spark, name) == [1, 2, 3]
        # The older date was added last, so that is what the table shows.
        assert take_back(workspace, name, f"{MONDAY}.1").shows == f"{WEDNESDAY}.1"
        assert shown(workspace, spark, name) == [1, 2]


def test_a_feed_points_to_the_previous_version(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name("feed")
    declared = project(name, format="parquet", feed={"latest": f"feeds/{name}/latest"})
    link = spark_site.root / f"feeds/{name}/latest"
    with opened(spark_site, declared, tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        assert link.resolve().name == second
        take_back(workspace, name, second)
        assert link.resolve().name == first
        take_back(workspace, name, first)
        assert not link.is_symlink()


def test_who_retracted_what_and_why_is_audited(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        with workspace.catalog.writing() as session:
            dataset_id = workspace.dataset_id(name)
            # A hold keeps data from being removed, not from being withdrawn.
            get_version_of(session, dataset_id, tag).legal_hold = True
        take_back(workspace, name, tag)
        with workspace.catalog.reading() as session:
            entry = list_audit(session, object_type="VERSION")[0]
    assert (entry.actor, entry.action, entry.reason) == ("ann", "version.retract", "wrong prices")
    assert entry.object_key == f"lake/{name}@{tag}"


def test_the_next_start_hides_a_version_retracted_over_http(
    spark_site: Site, spark: "SparkSession", tmp_path: Path
) -> None:
    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        first, second = (make_version(workspace, spark, name, MONDAY, [(n, "a")]) for n in (1, 2))
        with workspace.catalog.reading() as session:
            version_id = get_version_of(
                session, workspace.dataset_id(name), second
            ).dataset_version_id
        app = create_app(workspace.catalog, login=False)
        with TestClient(app, "http://127.0.0.1") as api:
            answer = api.post(
                f"/api/v1/version/{version_id}/retract", json={"reason": "wrong prices"}
            )
        assert answer.json() == {
            "retracted": second,
            "ready_again": first,
            "still_shown": True,
            "built_on": [],
        }
        assert shown(workspace, spark, name) == [2]
        (done,) = finish_retractions(workspace, SparkSessions(workspace.site))
        assert (done.tag, done.shows) == (second, first)
        assert shown(workspace, spark, name) == [1]


KILLED = """
import json, sys
from pathlib import Path
from floe.execution.site import Site
from floe.execution.spark.session import SparkSessions
from floe.execution.versions.retractions import retract
from floe.execution.workspace import open_workspace
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
task = json.loads(sys.argv[1])
platform = PlatformSpec.model_validate(task["platform"])
spec = ProjectSpec.model_validate(task["spec"])
site = Site(ProjectPaths(Path(task["root"])), spec, platform)
with open_workspace(site) as workspace:
    retract(workspace, SparkSessions(site), task["name"], task["tag"], reason="wrong", actor="ann")
"""


@pytest.mark.parametrize("point", ["retracted", "shown"])
def test_the_next_start_finishes_a_killed_retraction(
    spark_site: Site, spark: "SparkSession", tmp_path: Path, point: str
) -> None:
    name = new_name()
    site = site_of(spark_site, project(name), tmp_path)
    with opened(spark_site, project(name), tmp_path) as workspace:
        first = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        second = make_version(workspace, spark, name, MONDAY, [(2, "a")])
        task = {
            "root": str(site.root),
            "platform": site.platform.model_dump(mode="json"),
            "spec": project(name),
            "name": name,
            "tag": second,
        }
        ended = subprocess.run(
            [sys.executable, "-c", KILLED, json.dumps(task)],
            env={**site.environ, "FLOE_FAULT": point},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == -9, ended.stderr
        assert state_of(workspace, name, second) == "RETRACTED"
        assert shown(workspace, spark, name) == ([2] if point == "retracted" else [1])
        sparks = SparkSessions(workspace.site)
        finished = finish_retractions(workspace, sparks)
        assert [(retraction.tag, retraction.shows) for retraction in finished] == [(second, first)]
        assert shown(workspace, spark, name) == [1]
        assert finish_retractions(workspace, sparks) == []


def test_repeating_the_command_finishes_a_retraction_that_the_lake_refused(
    spark_site: Site, spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    name = new_name()
    with opened(spark_site, project(name), tmp_path) as workspace:
        tag = make_version(workspace, spark, name, MONDAY, [(1, "a")])
        with monkeypatch.context() as broken:
            broken.setattr("floe.execution.formats.iceberg.IcebergFormat.hide", fail)
            with pytest.raises(RetractionUnfinishedError, match="no space left on device"):
                take_back(workspace, name, tag)
        with workspace.catalog.reading() as session:
            version = get_version_of(session, workspace.dataset_id(name), tag)
            assert PENDING in details_of(version)
        assert take_back(workspace, name, tag).shows is None
        assert shown(workspace, spark, name) == []
        with pytest.raises(
            AlreadyRetractedError, match=r"already retracted on .*Z by ann: wrong prices\.$"
        ):
            take_back(workspace, name, tag)


def test_a_version_from_another_system_is_retracted_without_spark(
    spark_site: Site, tmp_path: Path
) -> None:
    name = new_name("foreign")
    with opened(spark_site, project(name), tmp_path) as workspace:
        with workspace.catalog.writing() as session:
            reserve_version(session, workspace.dataset_id(name), MONDAY, state="READY")
        assert take_back(workspace, name, f"{MONDAY}.1").was_shown is False
