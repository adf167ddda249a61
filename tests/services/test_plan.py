"""What is started for a project."""

import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from floe.execution.site import Site
from floe.orchestration.home import prepared_by
from floe.services.dagster_services import module_of
from floe.services.errors import PortWantedError, UnknownServiceError
from floe.services.plan import Plan, Wanted, make_plan
from floe.settings import ProjectPaths
from floe.spec import PlatformSpec, ProjectSpec
from floe.spec.orchestration import Orchestration
from tests.services.test_ports import taken

__all__ = ["taken"]

BUSY = ProjectSpec(name="night", orchestration=Orchestration(asset_modules=("assets",)))
ANY = Wanted(port=0, dagster_port=0)


def plan(root: Path, spec: ProjectSpec, platform: PlatformSpec | None, wanted: Wanted) -> Plan:
    made = make_plan(Site(ProjectPaths(root), spec, platform or PlatformSpec()), wanted)
    shutil.rmtree(made.runtime)
    return made


def names(made: Plan) -> list[str]:
    return [one.name for one in made.services]


def test_a_project_with_assets_gets_everything(tmp_path: Path) -> None:
    made = plan(tmp_path, BUSY, None, ANY)
    assert names(made) == ["spark", "api", "home", "code", "workers", "web", "daemon"]
    assert made.notes == ()


def test_nobody_opens_dagsters_database_while_its_tables_are_made(tmp_path: Path) -> None:
    site = Site(ProjectPaths(tmp_path), BUSY, PlatformSpec())
    needs = {one.name: one.needs for one in plan(tmp_path, BUSY, None, ANY).services}
    assert {name for name, needed in needs.items() if "home" in needed} == {
        *("code", "workers", "web", "daemon")
    }
    assert "code" in needs["workers"]
    # Later the project loads meanwhile.
    prepared_by(site).write_text(version("dagster"))
    needs = {one.name: one.needs for one in plan(tmp_path, BUSY, None, ANY).services}
    assert needs["code"] == ()
    prepared_by(site).write_text("0.1")
    needs = {one.name: one.needs for one in plan(tmp_path, BUSY, None, ANY).services}
    assert needs["code"] == ("home",)


def test_everything_listens_on_this_machine_only(tmp_path: Path) -> None:
    platform = PlatformSpec.model_validate({"api": {"host": "0.0.0.0"}})
    made = plan(tmp_path, BUSY, platform, ANY)
    listening = [one.command for one in made.services if "--host" in one.command]
    assert [command[command.index("--host") + 1] for command in listening] == ["127.0.0.1"]
    (web,) = [one.command for one in made.services if one.name == "web"]
    assert web[1:3] == ("-m", "floe.services.web")  # which listens on loopback, behind the guard
    (code,) = [one.command for one in made.services if one.name == "code"]
    assert Path(code[code.index("--socket") + 1]).parent == made.runtime


def test_the_api_is_asked_whether_it_is_ready(tmp_path: Path) -> None:
    (api,) = [one for one in plan(tmp_path, BUSY, None, ANY).services if one.name == "api"]
    assert "/api/v1/readiness does not answer" in api.probe().said


def test_without_anything_for_dagster_it_is_left_out_and_said(tmp_path: Path) -> None:
    made = plan(tmp_path, ProjectSpec(name="night"), None, Wanted(port=0))
    assert names(made) == ["spark", "api"]
    assert made.notes == (
        "Dagster is not started: the project has no orchestration and no process.",
    )


def test_only_what_is_asked_for_is_started(tmp_path: Path) -> None:
    assert names(plan(tmp_path, BUSY, None, Wanted(("spark",)))) == ["spark"]
    with pytest.raises(UnknownServiceError, match=r"'sprak' here\. Choose from: spark, api"):
        make_plan(Site(ProjectPaths(tmp_path), BUSY, PlatformSpec()), Wanted(("sprak",)))


def test_a_spark_of_others_is_only_shown(tmp_path: Path) -> None:
    platform = PlatformSpec.model_validate({"compute": {"default": {"url": "sc://lake:15002"}}})
    (spark,) = plan(tmp_path, BUSY, platform, Wanted(("spark",))).services
    assert (spark.command, spark.address) == ((), "sc://lake:15002")


def test_a_port_that_the_platform_names_is_meant(tmp_path: Path, taken: int) -> None:
    platform = PlatformSpec.model_validate({"orchestrator": {"port": taken}})
    site = Site(ProjectPaths(tmp_path), BUSY, platform)
    with pytest.raises(PortWantedError, match=f"Port {taken}, asked for Dagster's web interface"):
        make_plan(site, Wanted(("dagster",)))


def test_dagster_loads_the_projects_own_definitions_if_it_has_some(tmp_path: Path) -> None:
    site = Site(ProjectPaths(tmp_path), BUSY, PlatformSpec())
    assert module_of(site) == "floe.orchestration.project"
    (tmp_path / "orchestration").mkdir()
    (tmp_path / "orchestration" / "definitions.py").write_text("")
    assert module_of(site) == "orchestration.definitions"


def test_a_supervisor_needs_neither_dagster_nor_spark_nor_their_time() -> None:
    code = "import sys, floe.services.supervisor, floe.services.leftovers; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"dagster", "pyspark", "pandas", "grpc"} & set(done.stdout.split())
