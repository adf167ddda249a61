"""Dagster's home: dagster.yaml has the settings of the platform, and Dagster accepts it."""

import os
from pathlib import Path

import pytest
import yaml
from dagster import DagsterInstance, DefaultRunLauncher

from floe.execution.site import Site
from floe.orchestration.home import (
    ADDRESS_VARIABLE,
    STORAGE_VARIABLE,
    dagster_environ,
    home_of,
    is_prepared,
    storage_url,
    web_address,
    write_home,
    write_workspace,
)
from floe.orchestration.instance import prepare, set_pools
from floe.orchestration.launcher.run_launcher import WarmRunLauncher
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.platform import Orchestrator, RunRetries, TagLimit
from floe.spec.secrets import SecretRef
from tools.postgresql import PostgresqlServer

pytestmark = pytest.mark.slow


def site(root: Path, **declared: object) -> Site:
    platform = PlatformSpec(orchestrator=Orchestrator.model_validate(declared))
    environ = {"DAGSTER_PASSWORD": "p@ss/word"}
    return Site(ProjectPaths(root), ProjectSpec(name="night"), platform, environ)


def settings(item: Site) -> dict[str, object]:
    result: dict[str, object] = yaml.safe_load((home_of(item) / "dagster.yaml").read_text())
    return result


def test_dagster_accepts_the_written_file(tmp_path: Path) -> None:
    declared = {
        "max_concurrent_runs": 3,
        "retries": RunRetries(attempts=2, failed=True),
        "tag_limits": (TagLimit(key="team", per_value=True, limit=1),),
        "launcher": "default",
    }
    item = site(tmp_path, **declared)
    write_home(item)
    with DagsterInstance.from_config(str(home_of(item))) as instance:
        queue = instance.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 3
        assert queue.tag_concurrency_limits == [
            {"key": "team", "limit": 1, "value": {"applyLimitPerUniqueValue": True}}
        ]
        assert instance.run_retries_max_retries == 2
        assert instance.run_retries_retry_on_asset_or_op_failure is True
        assert instance.run_monitoring_enabled
        assert instance.telemetry_enabled is False
        assert instance.root_directory == str(tmp_path / ".floe" / "dagster")


def test_runs_are_launched_warm_unless_the_platform_says_otherwise(tmp_path: Path) -> None:
    result = []
    for declared in ({}, {"launcher": "default"}):
        write_home(site(tmp_path, **declared))
        with DagsterInstance.from_config(str(home_of(site(tmp_path)))) as instance:
            result.append(type(instance.run_launcher))
    assert result == [WarmRunLauncher, DefaultRunLauncher]


def test_only_the_owner_can_read_the_home(tmp_path: Path) -> None:
    item = site(tmp_path)
    write_home(item)
    assert home_of(item).stat().st_mode & 0o777 == 0o700


def test_the_file_is_written_only_when_it_changes(tmp_path: Path) -> None:
    assert write_home(site(tmp_path)) is True
    before = (tmp_path / ".floe/dagster/dagster.yaml").stat().st_mtime_ns
    assert write_home(site(tmp_path)) is False
    assert (tmp_path / ".floe/dagster/dagster.yaml").stat().st_mtime_ns == before
    assert write_home(site(tmp_path, max_concurrent_runs=1)) is True
    assert [item.name for item in home_of(site(tmp_path)).iterdir()] == ["dagster.yaml"]


def test_a_password_reaches_dagster_and_no_file(tmp_path: Path) -> None:
    item = site(
        tmp_path,
        storage_url="postgresql://db.example.com:5433/dagster?sslmode=require",
        user="floe",
        password=SecretRef("env", "DAGSTER_PASSWORD"),
    )
    write_home(item)
    assert settings(item)["storage"] == {"postgres": {"postgres_url": {"env": STORAGE_VARIABLE}}}
    assert "p@ss" not in (home_of(item) / "dagster.yaml").read_text()
    url = "postgresql://floe:p%40ss%2Fword@db.example.com:5433/dagster?sslmode=require"
    assert dagster_environ(item)[STORAGE_VARIABLE] == url


def test_without_a_database_dagster_keeps_its_state_in_its_home(tmp_path: Path) -> None:
    item = site(tmp_path)
    write_home(item)
    assert storage_url(item) is None
    assert "storage" not in settings(item)
    assert STORAGE_VARIABLE not in dagster_environ(item)


def test_the_workspace_names_the_project(tmp_path: Path) -> None:
    item = site(tmp_path)
    write_home(item)
    written = yaml.safe_load(write_workspace(item, Path("/tmp/floe-x/code.sock")).read_text())
    assert written == {
        "load_from": [
            {"grpc_server": {"socket": "/tmp/floe-x/code.sock", "location_name": "night"}}
        ]
    }


def test_pools_get_the_limits_of_the_platform_and_removed_pools_are_deleted() -> None:
    with DagsterInstance.ephemeral() as instance:
        set_pools(instance, {"jdbc": 2, "old": 1})
        set_pools(instance, {"jdbc": 3})
        limits = {
            pool_limit.name: pool_limit.limit
            for pool_limit in instance.event_log_storage.get_pool_limits()
        }
    assert limits == {"jdbc": 3}


def test_preparing_creates_the_tables_and_the_pools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    (tmp_path / "platform.yaml").write_text("orchestrator: {pools: {jdbc: 2}, launcher: default}\n")
    item = site(tmp_path, launcher="default")
    write_home(item)
    for name, value in dagster_environ(item).items():
        monkeypatch.setenv(name, value)
    assert not is_prepared(item)
    for _ in range(2):
        prepare()
        assert is_prepared(item)
    with DagsterInstance.from_config(os.environ["DAGSTER_HOME"]) as instance:
        assert [item.name for item in instance.event_log_storage.get_pool_limits()] == ["jdbc"]


@pytest.mark.postgresql
def test_dagster_keeps_its_state_in_postgresql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgresql: PostgresqlServer
) -> None:
    (tmp_path / "floe.yaml").write_text("name: night\n")
    url = postgresql.create_database("dagster_home").replace("postgresql+psycopg:", "postgresql:")
    item = site(tmp_path, storage_url=url, launcher="default")
    write_home(item)
    for name, value in dagster_environ(item).items():
        monkeypatch.setenv(name, value)
    prepare()
    with DagsterInstance.from_config(str(home_of(item))) as instance:
        assert "postgres" in type(instance.event_log_storage).__module__
        assert instance.get_runs() == []
    assert not (home_of(item) / "history").exists()


def test_links_use_the_address_of_dagster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(ADDRESS_VARIABLE, raising=False)
    assert web_address(site(tmp_path, port=3001)) == "http://127.0.0.1:3001"
    monkeypatch.setenv(ADDRESS_VARIABLE, "http://127.0.0.1:4711")
    assert web_address(site(tmp_path)) == "http://127.0.0.1:4711"
    known = site(tmp_path, url="https://dagster.example.com/")
    assert web_address(known) == "https://dagster.example.com"
