"""Which services are started for a project, and on which ports."""

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from floe.execution.site import Site
from floe.orchestration.home import prepared_by
from floe.services.dagster_services import module_of
from floe.services.plan import (
    Plan,
    PortRequest,
    PortTakenError,
    UnknownServiceError,
    UpOptions,
    choose_port,
    is_free,
    make_plan,
)
from floe.services.service import HOST
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.orchestration import Orchestration

__all__ = ["taken"]

BUSY = ProjectSpec(name="night", orchestration=Orchestration(asset_modules=("assets",)))
ANY = UpOptions(port=0, dagster_port=0)


def plan(root: Path, spec: ProjectSpec, platform: PlatformSpec | None, options: UpOptions) -> Plan:
    made = make_plan(Site(ProjectPaths(root), spec, platform or PlatformSpec()), options)
    shutil.rmtree(made.runtime)
    return made


def names(plan: Plan) -> list[str]:
    return [service.name for service in plan.services]


def test_a_project_with_assets_gets_all_services(tmp_path: Path) -> None:
    made = plan(tmp_path, BUSY, None, ANY)
    assert names(made) == ["spark", "api", "home", "code", "workers", "web", "daemon"]
    assert made.notes == ()


def test_services_wait_until_dagsters_tables_exist(tmp_path: Path) -> None:
    site = Site(ProjectPaths(tmp_path), BUSY, PlatformSpec())
    needs = {service.name: service.needs for service in plan(tmp_path, BUSY, None, ANY).services}
    assert {name for name, needed in needs.items() if "home" in needed} == {
        *("code", "workers", "web", "daemon")
    }
    assert "code" in needs["workers"]
    # Once the tables exist, the project loads at the same time.
    prepared_by(site).write_text(version("dagster"))
    needs = {service.name: service.needs for service in plan(tmp_path, BUSY, None, ANY).services}
    assert needs["code"] == ()
    prepared_by(site).write_text("0.1")
    needs = {service.name: service.needs for service in plan(tmp_path, BUSY, None, ANY).services}
    assert needs["code"] == ("home",)


def test_everything_listens_on_this_machine_only(tmp_path: Path) -> None:
    platform = PlatformSpec.model_validate({"api": {"host": "0.0.0.0"}})
    made = plan(tmp_path, BUSY, platform, ANY)
    listening = [service.command for service in made.services if "--host" in service.command]
    assert [command[command.index("--host") + 1] for command in listening] == ["127.0.0.1"]
    (web,) = [service.command for service in made.services if service.name == "web"]
    assert web[1:3] == (
        "-m",
        "floe.services.dagster_web",
    )  # which listens on loopback, behind the guard
    (code,) = [service.command for service in made.services if service.name == "code"]
    assert Path(code[code.index("--socket") + 1]).parent == made.runtime


def test_the_api_is_probed_by_its_readiness_route(tmp_path: Path) -> None:
    (api,) = [
        service for service in plan(tmp_path, BUSY, None, ANY).services if service.name == "api"
    ]
    assert "/api/v1/readiness does not answer" in api.probe().message


def test_dagster_is_left_out_with_a_note_if_it_has_nothing_to_run(tmp_path: Path) -> None:
    made = plan(tmp_path, ProjectSpec(name="night"), None, UpOptions(port=0))
    assert names(made) == ["spark", "api"]
    assert made.notes == (
        "Dagster is not started: the project declares no orchestration and no processes.",
    )


def test_only_the_requested_services_are_started(tmp_path: Path) -> None:
    assert names(plan(tmp_path, BUSY, None, UpOptions(("spark",)))) == ["spark"]
    with pytest.raises(UnknownServiceError, match=r"Unknown service 'sprak'\. .*: spark, api"):
        make_plan(Site(ProjectPaths(tmp_path), BUSY, PlatformSpec()), UpOptions(("sprak",)))


def test_a_foreign_spark_server_is_only_shown(tmp_path: Path) -> None:
    platform = PlatformSpec.model_validate({"compute": {"default": {"url": "sc://lake:15002"}}})
    (spark,) = plan(tmp_path, BUSY, platform, UpOptions(("spark",))).services
    assert (spark.command, spark.address) == ((), "sc://lake:15002")


def test_a_taken_port_of_the_platform_file_is_an_error(tmp_path: Path, taken: int) -> None:
    platform = PlatformSpec.model_validate({"orchestrator": {"port": taken}})
    site = Site(ProjectPaths(tmp_path), BUSY, platform)
    with pytest.raises(PortTakenError, match=f"Port {taken} for Dagster's web interface is in use"):
        make_plan(site, UpOptions(("dagster",)))


def test_dagster_loads_the_projects_own_definitions_if_it_has_some(tmp_path: Path) -> None:
    site = Site(ProjectPaths(tmp_path), BUSY, PlatformSpec())
    assert module_of(site) == "floe.orchestration.code_location"
    (tmp_path / "orchestration").mkdir()
    (tmp_path / "orchestration" / "definitions.py").write_text("")
    assert module_of(site) == "orchestration.definitions"


def test_the_supervisor_imports_neither_dagster_nor_spark() -> None:
    code = (
        "import sys, floe.services.supervisor, floe.services.child_processes; print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"dagster", "pyspark", "pandas", "grpc"} & set(done.stdout.split())


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind((HOST, 0))
        other.listen()
        yield other.getsockname()[1]


def test_a_free_port_is_used_without_a_note() -> None:
    free, _ = choose_port(PortRequest("the API", 0, "--port", required=True))
    assert choose_port(PortRequest("the API", free, "--port", required=False)) == (free, "")


def test_a_taken_port_is_replaced_with_a_note(taken: int) -> None:
    port, note = choose_port(PortRequest("the API", taken, "--port", required=False))
    assert port != taken
    assert is_free(port)
    assert note == f"Port {taken} is in use; the API listens on {port} instead."


def test_a_taken_port_that_is_required_is_an_error(taken: int) -> None:
    with pytest.raises(PortTakenError, match=rf"Port {taken} for the API is in use .*--port 0"):
        choose_port(PortRequest("the API", taken, "--port", required=True))
