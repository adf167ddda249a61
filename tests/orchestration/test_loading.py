"""A project is loaded from its compiled file, which is rewritten except in production."""

import json
import shutil
from pathlib import Path

import pytest

from floe.orchestration.loading import StaleProjectError, load
from floe.settings import ProjectNotFoundError, ProjectPaths
from floe.spec.compiler import compile_project, write_compiled
from floe.spec.findings import SpecError
from tests.orchestration.projects import make_project

PRODUCTION = {"platform.yaml": "environment: production\n"}
JOBS = """
    orchestration:
      jobs:
        nightly:
          type: batch
          selection:
            - bronze.*
"""


def compiled(folder: Path) -> Path:
    return ProjectPaths(folder).compiled


def compile_there(folder: Path) -> None:
    paths = ProjectPaths(folder)
    write_compiled(paths, compile_project(paths, {}))


def test_a_missing_compiled_file_is_written_in_development(tmp_path: Path) -> None:
    make_project(tmp_path, "name: shop\n")
    assert load(tmp_path, {}).site.spec.name == "shop"
    assert json.loads(compiled(tmp_path).read_text())["project"] == "shop"


def test_a_stale_compiled_file_is_rewritten_in_development(tmp_path: Path) -> None:
    make_project(tmp_path, "name: shop\n")
    load(tmp_path, {})
    make_project(tmp_path, "name: market\n")
    assert load(tmp_path, {}).site.spec.name == "market"


def test_a_current_compiled_file_is_not_rewritten(tmp_path: Path) -> None:
    make_project(tmp_path)
    compile_there(tmp_path)
    before = compiled(tmp_path).stat()
    load(tmp_path, {})
    after = compiled(tmp_path).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_missing_compiled_file_is_rejected_in_production(tmp_path: Path) -> None:
    make_project(tmp_path, files=PRODUCTION)
    with pytest.raises(StaleProjectError, match=r"does not exist\. Run: floe compile\."):
        load(tmp_path, {})
    assert not compiled(tmp_path).exists()


def test_a_stale_compiled_file_is_rejected_in_production(tmp_path: Path) -> None:
    make_project(tmp_path, "name: shop\n", PRODUCTION)
    compile_there(tmp_path)
    before = compiled(tmp_path).read_bytes()
    assert load(tmp_path, {}).site.spec.name == "shop"
    make_project(tmp_path, "name: market\n")
    with pytest.raises(StaleProjectError, match=r"is older than floe\.yaml\. Run: floe compile\."):
        load(tmp_path, {})
    assert compiled(tmp_path).read_bytes() == before


def test_a_project_may_be_deployed_without_its_sources(tmp_path: Path) -> None:
    make_project(tmp_path / "built", JOBS)
    compile_there(tmp_path / "built")
    position = tmp_path / "deployed/.floe"
    shutil.copytree(tmp_path / "built/.floe", position)
    (tmp_path / "deployed/platform.yaml").write_text(PRODUCTION["platform.yaml"])
    loading = load(position / "compiled_artifacts.json", {})
    assert loading.site.root == tmp_path / "deployed"
    path = ("orchestration", "jobs", "nightly", "selection", 0)
    assert str(loading.finding(path, "is wrong")).startswith("floe.yaml:5: orchestration.jobs.")


def test_a_project_is_found_by_floe_project_or_in_a_parent_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_project(tmp_path / "shop", "name: shop\n", {"deep/er/file.txt": ""})
    monkeypatch.chdir(tmp_path)
    assert load(None, {"FLOE_PROJECT": str(tmp_path / "shop")}).site.spec.name == "shop"
    with pytest.raises(ProjectNotFoundError):
        load(None, {})
    monkeypatch.chdir(tmp_path / "shop/deep/er")
    assert load(None, {}).site.spec.name == "shop"


def test_environment_variables_are_resolved_at_load(tmp_path: Path) -> None:
    make_project(tmp_path, "name: shop\ntimezone: ${ZONE:UTC}\n")
    assert load(tmp_path, {}).site.spec.timezone == "UTC"
    assert load(tmp_path, {"ZONE": "Asia/Tokyo"}).site.spec.timezone == "Asia/Tokyo"


def test_a_project_that_needs_a_missing_part_of_the_platform_is_rejected(tmp_path: Path) -> None:
    offers = {"platform.yaml": "compute: {big: {}}\n"}
    make_project(tmp_path, "name: shop\ncompute: big\n", offers)
    assert load(tmp_path, {}).site.spec.compute == "big"
    make_project(
        tmp_path, "name: shop\ncompute: big\n", {"platform.yaml": "compute: {small: {}}\n"}
    )
    with pytest.raises(SpecError, match=r"floe\.yaml:2: compute: platform\.yaml has no compute"):
        load(tmp_path, {})


def test_a_finding_has_the_line_of_its_value(tmp_path: Path) -> None:
    make_project(tmp_path, JOBS)
    loading = load(tmp_path, {})
    path = ("orchestration", "jobs", "nightly", "selection", 0)
    message = str(loading.refusal(path, "matches no asset", "Write another."))
    assert message == (
        "floe.yaml:8: orchestration.jobs.nightly.selection[0]: matches no asset. Write another."
    )
    job = loading.finding(("orchestration", "jobs", "nightly"), "is wrong", at_key=True)
    assert job.line == 5
