"""The settings of a server, from platform.yaml."""

import os
from pathlib import Path

import pytest

from floe.execution.spark.server import connect_url
from floe.execution.spark.server_settings import (
    GIB,
    available_memory,
    default_cores,
    default_memory,
    driver_memory,
    fingerprint,
    master,
    memory_of,
    on_loopback,
    server_settings,
    session_settings,
)
from floe.spec import PlatformSpec
from floe.spec.platform import Compute, Lake, LakeCatalog, Storage
from floe.spec.secrets import SecretRef
from tests.execution.sites import make_site

LAKE = "spark.sql.catalog.lake"
SECRET = SecretRef("env", "LAKE_PASSWORD")


def platform(**lake: object) -> PlatformSpec:
    return PlatformSpec(lake=Lake(catalog=LakeCatalog.model_validate(lake)))


def test_an_embedded_lake_is_a_sqlite_file_in_the_project(tmp_path: Path) -> None:
    settings = server_settings(make_site(tmp_path))
    assert settings["spark.sql.defaultCatalog"] == "lake"
    assert settings[f"{LAKE}.type"] == "jdbc"
    assert settings[f"{LAKE}.uri"] == f"jdbc:sqlite:{tmp_path}/.floe/lake.db"
    assert settings[f"{LAKE}.warehouse"] == f"{tmp_path}/.floe/lake"
    assert settings[f"{LAKE}.jdbc.schema-version"] == "V1"


def test_every_lake_has_the_settings_that_publishing_needs(tmp_path: Path) -> None:
    for given in (server_settings(make_site(tmp_path)), session_settings(make_site(tmp_path))):
        assert given[f"{LAKE}.cache-enabled"] == "false"
        assert given[f"{LAKE}.table-override.write.wap.enabled"] == "true"


def test_a_postgresql_lake_has_its_login_and_no_sqlite_settings(tmp_path: Path) -> None:
    given = platform(uri="jdbc:postgresql://db/lake", user="floe", password=str(SECRET))
    settings = server_settings(make_site(tmp_path, given))
    assert settings[f"{LAKE}.jdbc.user"] == "floe"
    assert settings[f"{LAKE}.jdbc.password"] == SECRET
    assert f"{LAKE}.jdbc.busy_timeout" not in settings


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("jdbc:sqlite:lakes/a.db", "jdbc:sqlite:{root}/lakes/a.db"),
        ("jdbc:sqlite:/data/a.db", "jdbc:sqlite:/data/a.db"),
        ("jdbc:sqlite:file:a.db?mode=rwc", "jdbc:sqlite:file:a.db?mode=rwc"),
    ],
)
def test_a_sqlite_path_is_relative_to_the_project(tmp_path: Path, written: str, read: str) -> None:
    settings = server_settings(make_site(tmp_path, platform(uri=written)))
    assert settings[f"{LAKE}.uri"] == read.format(root=tmp_path)


def test_other_catalogs_have_their_own_properties(tmp_path: Path) -> None:
    rest = {"type": "rest", "uri": "https://lake", "token": str(SECRET), "options": {"scope": "x"}}
    settings = server_settings(make_site(tmp_path, platform(**rest)))
    assert settings[f"{LAKE}.type"] == "rest"
    assert settings[f"{LAKE}.uri"] == "https://lake"
    assert settings[f"{LAKE}.token"] == SECRET
    assert settings[f"{LAKE}.scope"] == "x"
    glue = server_settings(make_site(tmp_path, platform(type="glue")))
    assert glue[f"{LAKE}.catalog-impl"] == "org.apache.iceberg.aws.glue.GlueCatalog"
    assert f"{LAKE}.type" not in glue


def test_a_password_for_a_rest_catalog_is_not_dropped(tmp_path: Path) -> None:
    rest = {"type": "rest", "uri": "https://lake", "user": "floe", "password": str(SECRET)}
    settings = server_settings(make_site(tmp_path, platform(**rest)))
    assert settings[f"{LAKE}.rest.auth.type"] == "basic"
    assert settings[f"{LAKE}.rest.auth.basic.password"] == SECRET


def test_storage_options_become_hadoop_settings(tmp_path: Path) -> None:
    given = PlatformSpec(
        storage={
            "default": Storage(options={"fs.s3a.access.key": "mine"}),
            "other": Storage(options={"fs.s3a.access.key": "theirs", "spark.x": "1"}),
        }
    )
    settings = server_settings(make_site(tmp_path, given))
    assert settings["spark.hadoop.fs.s3a.access.key"] == "mine"
    assert settings["spark.x"] == "1"


def test_a_secret_is_redacted_whatever_its_setting_is_called(tmp_path: Path) -> None:
    compute = Compute(conf={"spark.mail.pin": str(SECRET)})
    settings = server_settings(make_site(tmp_path, PlatformSpec(compute={"default": compute})))
    assert str(settings["spark.redaction.regex"]).endswith(r"|spark\.mail\.pin")
    assert "mail" not in str(server_settings(make_site(tmp_path))["spark.redaction.regex"])


def test_settings_of_the_platform_take_precedence(tmp_path: Path) -> None:
    compute = Compute(cores=3, conf={"spark.ui.enabled": "true", "spark.driver.memory": "3g"})
    settings = server_settings(make_site(tmp_path, PlatformSpec(compute={"default": compute})))
    assert settings["spark.ui.enabled"] == "true"
    assert settings["spark.sql.shuffle.partitions"] == "6"
    assert (master(compute), driver_memory(compute)) == ("local[3]", "3g")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("spark://127.0.0.1:7077", True),
        ("local[4]", True),
        ("spark://master:7077", False),
        ("yarn", False),
        ("k8s://https://k8s:443", False),
    ],
)
def test_the_driver_uses_loopback_only_if_the_cluster_is_local(
    tmp_path: Path, url: str, near: bool
) -> None:
    compute = Compute(url=url)
    settings = server_settings(make_site(tmp_path, PlatformSpec(compute={"default": compute})))
    assert on_loopback(compute) is near
    assert ("spark.driver.host" in settings) is near
    assert settings["spark.connect.grpc.binding.address"] == "127.0.0.1"


def test_the_fingerprint_depends_on_declared_settings(tmp_path: Path) -> None:
    first = fingerprint(make_site(tmp_path))
    assert fingerprint(make_site(tmp_path)) == first
    assert fingerprint(make_site(tmp_path, platform(options={"scope": "x"}))) != first
    moved = tmp_path / "moved"
    moved.mkdir()
    assert fingerprint(make_site(moved)) != first


@pytest.mark.parametrize(
    ("url", "full"),
    [
        ("sc://host:15002", "sc://host:15002/;token=a%2Fb"),
        ("sc://host:15002/", "sc://host:15002/;token=a%2Fb"),
        ("sc://host:15002/;use_ssl=true", "sc://host:15002/;use_ssl=true;token=a%2Fb"),
    ],
)
def test_a_token_is_added_to_any_form_of_address(url: str, full: str) -> None:
    assert connect_url(url, "a/b") == full
    assert connect_url(url, None) == url


def control_group(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("there", "taken"),
    [(GIB, "1024m"), (6 * GIB, "2048m"), (24 * GIB, "8192m"), (512 * GIB, "8192m")],
)
def test_a_third_of_the_memory_is_used_within_bounds(there: int, taken: str) -> None:
    assert memory_of(there) == taken


def test_the_limits_of_a_container_override_the_machine(tmp_path: Path) -> None:
    group = control_group(tmp_path, memory_dot_max=str(3 * GIB), cpu_dot_max="100000 100000")
    assert default_memory(group) == "1024m"
    assert default_cores(group) == 1


def test_version_1_control_groups_are_read_too(tmp_path: Path) -> None:
    group = control_group(
        tmp_path,
        memory__memory_dot_limit_in_bytes=str(GIB),
        cpu__cpu_dot_cfs_quota_us="50000",
        cpu__cpu_dot_cfs_period_us="100000",
    )
    assert available_memory(group) == GIB
    assert default_cores(group) == 1


@pytest.mark.parametrize("limit", ["max 100000", "-1 100000", "rubbish"])
def test_without_a_limit_the_resources_of_the_machine_are_used(tmp_path: Path, limit: str) -> None:
    group = control_group(tmp_path, memory_dot_max="max", cpu_dot_max=limit)
    assert default_cores(group) == len(os.sched_getaffinity(0))
    assert available_memory(group) > GIB
