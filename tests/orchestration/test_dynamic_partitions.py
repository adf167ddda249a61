"""Keys are added while the platform runs: by command, by code and by a function."""

from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import DagsterInstance, DefaultSensorStatus, SensorResult, build_sensor_context
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.errors import FloeError
from floe.orchestration import add_partitions
from floe.orchestration.instances import open_instance
from floe.orchestration.loading import load
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


def test_keys_come_and_go_by_command(floe: Floe) -> None:
    assert floe("add", "clients", "acme", "globex").output == "2 added to 'clients'\n"
    assert floe("add", "clients", "acme", "hooli").output == (
        "1 added to 'clients', 1 there already\n"
    )
    assert floe("list", "clients").output.split() == ["acme", "globex", "hooli"]
    assert floe("remove", "clients", "globex").output == "1 removed from 'clients'\n"
    assert floe("list", "clients").output.split() == ["acme", "hooli"]


def test_a_dimension_that_is_declared_in_place_has_keys_too(floe: Floe) -> None:
    floe("add", "by_desk/desk", "rates")
    assert floe("list", "by_desk").output.split()[0] == "2026-09-01|rates"
    listed = floe("list").output
    assert "by_desk" in listed
    assert "time_window" in listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add", "clint", "acme"), "No dynamic partitions named 'clint' are declared. Did you"),
        (("add", "week", "2026-09-09"), "No dynamic partitions named 'week' are declared."),
        (("add", "clients", "a|b"), "'a|b' cannot be a key of 'clients'."),
        (("remove", "clients", "nobody"), "'nobody' is no key of 'clients'."),
        (("list", "nothing"), "No partitions named 'nothing' are declared."),
    ],
)
def test_mistakes_are_said(floe: Floe, words: tuple[str, ...], said: str) -> None:
    result = floe(*words)
    assert isinstance(result.exception, FloeError)
    assert said in str(result.exception)


def test_code_adds_keys_to_the_projects_own_instance(tmp_path: Path) -> None:
    make_project(tmp_path, FLOE_YAML)
    assert add_partitions("clients", ["acme", "acme"], tmp_path) == ["acme"]
    with open_instance(load(tmp_path).site) as instance:
        assert instance.root_directory == str(tmp_path / ".floe/dagster")
        assert instance.get_dynamic_partitions("clients") == ["acme"]


FUNCTION = "orchestration: {partitions: {clients: {type: dynamic, fn: mine.clients}}}"


def test_a_function_adds_the_keys_that_are_new(tmp_path: Path) -> None:
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
