"""Dynamic keys are added at run time by command, code or a function; drift is reported."""

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import (
    AssetMaterialization,
    DagsterInstance,
    DefaultSensorStatus,
    SensorResult,
    build_sensor_context,
)
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.errors import FloeError
from floe.orchestration import add_partitions
from floe.orchestration.instance import open_instance
from floe.orchestration.loading import load
from floe.orchestration.partition_keys import partition_drift
from floe.spec import SpecError
from tests.orchestration.projects import load_definitions, load_parts, make_project

pytestmark = pytest.mark.slow

FLOE_YAML = """
    orchestration:
      partitions:
        clients: {type: dynamic}
        week: {type: time_window, start: 2026-09-01, end: 2026-09-08}
        by_desk:
          type: multi
          partitions: {day: week, desk: {type: dynamic}}
"""
Floe = Callable[..., Result]


@pytest.fixture(autouse=True)
def without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)


@pytest.fixture
def floe(tmp_path: Path) -> Floe:
    """The command line, in a project with dynamic partitions."""
    make_project(tmp_path, FLOE_YAML)
    where = ["--project", str(tmp_path)]
    return lambda *words: CliRunner().invoke(app, ["partitions", *words, *where])


def test_commands_add_list_and_remove_keys(floe: Floe) -> None:
    assert floe("add", "clients", "acme", "globex").output == "2 added to 'clients'\n"
    assert floe("add", "clients", "acme", "hooli").output == (
        "1 added to 'clients', 1 already there\n"
    )
    assert floe("list", "clients").output.split() == ["acme", "globex", "hooli"]
    assert floe("remove", "clients", "globex").output == "1 removed from 'clients'\n"
    assert floe("list", "clients").output.split() == ["acme", "hooli"]


def test_an_inline_dimension_has_dynamic_keys_too(floe: Floe) -> None:
    floe("add", "by_desk/desk", "rates")
    assert floe("list", "by_desk").output.split()[0] == "2026-09-01|rates"
    listed = floe("list").output
    assert "by_desk" in listed
    assert "time_window" in listed


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("add", "clint", "acme"), "No dynamic partitions named 'clint' are declared. Did you"),
        (("add", "week", "2026-09-09"), "No dynamic partitions named 'week' are declared."),
        (("add", "clients", "a|b"), "'a|b' is not a valid key of 'clients'."),
        (("remove", "clients", "nobody"), "'nobody' is not a key of 'clients'."),
        (("list", "nothing"), "No partitions named 'nothing' are declared."),
    ],
)
def test_invalid_names_and_keys_are_reported(
    floe: Floe, words: tuple[str, ...], expected: str
) -> None:
    result = floe(*words)
    assert isinstance(result.exception, FloeError)
    assert expected in str(result.exception)


def test_code_adds_keys_to_the_projects_own_instance(tmp_path: Path) -> None:
    make_project(tmp_path, FLOE_YAML)
    assert add_partitions("clients", ["acme", "acme"], tmp_path) == ["acme"]
    with open_instance(load(tmp_path).site) as instance:
        assert instance.root_directory == str(tmp_path / ".floe/dagster")
        assert instance.get_dynamic_partitions("clients") == ["acme"]


FUNCTION = "orchestration: {partitions: {clients: {type: dynamic, fn: mine.clients}}}"


def test_a_function_adds_new_keys(tmp_path: Path) -> None:
    make_project(tmp_path, FUNCTION, {"mine.py": "def clients(): return ['acme', 'globex']\n"})
    definitions = load_definitions(tmp_path).get_repository_def()
    sensor = definitions.get_sensor_def("floe_partitions_clients")
    assert sensor.default_status == DefaultSensorStatus.RUNNING
    with DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("clients", ["globex", "older"])
        result = sensor(build_sensor_context(instance))
        assert isinstance(result, SensorResult)
        (request,) = result.dynamic_partitions_requests or []
        assert list(request.partition_keys) == ["acme"]


def test_a_function_that_cannot_be_loaded_stops_the_load(tmp_path: Path) -> None:
    make_project(tmp_path, FUNCTION, {"mine.py": "def client(): ...\n"})
    with pytest.raises(SpecError, match=r"partitions\.clients\.fn: .*Did you mean 'client'"):
        load_parts(tmp_path)


ASSETS = "from dagster import asset\n\n@asset(key_prefix='bronze')\ndef orders() -> None: ...\n"


def project(folder: Path, partitions: str, setting: str = "{partitions: p}") -> Path:
    floe_yaml = f"""
        orchestration:
          asset_modules: [mine]
          partitions: {{p: {partitions}}}
          assets: {{bronze.orders: {setting}}}
    """
    return make_project(folder, floe_yaml, {"mine.py": ASSETS})


def make(instance: DagsterInstance, *keys: str) -> None:
    for key in keys:
        result = AssetMaterialization(["bronze", "orders"], partition=key)
        instance.report_runless_asset_event(result)


SEPTEMBER = "{type: time_window, start: 2026-09-01}"
LATER = "{type: time_window, start: 2026-09-03}"


def test_existing_keys_are_no_drift(tmp_path: Path) -> None:
    with DagsterInstance.ephemeral() as instance:
        make(instance, "2026-09-03", "2026-09-04")
        assert partition_drift(instance, load_parts(project(tmp_path, LATER))) == []


@pytest.mark.parametrize(
    ("partitions", "setting", "expected"),
    [
        (
            LATER,
            "{partitions: p}",
            "'bronze.orders' has other partitions now: 2 of 3 materialized partitions no "
            "longer exist (2026-09-01, 2026-09-02).",
        ),
        (
            "{type: static, partition_keys: [EMEA]}",
            "{partitions: p}",
            "3 of 3 materialized partitions no longer exist (2026-09-01, 2026-09-02, 2026-09-03).",
        ),
        (SEPTEMBER, "{group_name: raw}", "'bronze.orders' is no longer partitioned: 3 of 3"),
        ("{type: dynamic}", "{partitions: p}", "'bronze.orders' has other partitions now: 2 of 3"),
    ],
    ids=["later start", "another kind", "none", "dynamic"],
)
def test_materialized_partitions_without_key_are_reported(
    tmp_path: Path, partitions: str, setting: str, expected: str
) -> None:
    with DagsterInstance.ephemeral() as instance:
        make(instance, "2026-09-01", "2026-09-02", "2026-09-03")
        instance.add_dynamic_partitions("p", ["2026-09-01"])
        (sentence,) = partition_drift(instance, load_parts(project(tmp_path, partitions, setting)))
        assert expected in sentence


def test_drift_is_logged_at_every_load_until_it_is_fixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    project(tmp_path, SEPTEMBER)
    with open_instance(load(tmp_path).site) as instance:
        make(instance, "2026-09-01", "2026-09-03")
    project(tmp_path, LATER)
    floe = ["partitions", "check", "--project", str(tmp_path)]
    checked = CliRunner().invoke(app, floe)
    assert checked.exit_code == 1
    assert "1 of 2 materialized partitions no longer exist (2026-09-01)" in checked.output

    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / ".floe/dagster"))
    with caplog.at_level(logging.WARNING, "floe"):
        load_parts(tmp_path)
        load_parts(tmp_path)
        assert [record.getMessage() for record in caplog.records] == [checked.output.strip()] * 2
        caplog.clear()
        project(tmp_path, SEPTEMBER)
        load_parts(tmp_path)
        assert caplog.records == []
    assert CliRunner().invoke(app, floe).exit_code == 0
