"""Where a project and its platform are found."""

from pathlib import Path

import pytest

from floe.settings import (
    PlatformFileNotFoundError,
    ProjectNotFoundError,
    ProjectPaths,
    find_project,
    platform_file,
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "risk"
    (folder / "sql").mkdir(parents=True)
    (folder / "floe.yaml").write_text("name: risk\n")
    return folder


def test_a_project_is_found_from_any_folder_inside_it(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project / "sql")
    assert find_project(environ={}).root == project


def test_a_named_project_wins_over_where_one_stands(project: Path) -> None:
    assert find_project(project, environ={"FLOE_PROJECT": "nowhere"}).root == project
    assert find_project(project / "floe.yaml", environ={}).root == project
    assert find_project(environ={"FLOE_PROJECT": str(project)}).root == project


def test_no_project_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ProjectNotFoundError, match="name it with --project"):
        find_project(environ={})
    with pytest.raises(ProjectNotFoundError):
        find_project(tmp_path, environ={})


def test_the_platform_file_is_chosen_by_name_then_environment_then_default(project: Path) -> None:
    paths = ProjectPaths(project)
    assert platform_file(paths, {}) is None
    (project / "platform.yaml").write_text("")
    (project / "platform.prod.yaml").write_text("")
    (project / "mine.yaml").write_text("")
    assert platform_file(paths, {}) == project / "platform.yaml"
    prod = {"FLOE_PLATFORM_ENV": "prod"}
    assert platform_file(paths, prod) == project / "platform.prod.yaml"
    named = {**prod, "FLOE_PLATFORM_FILE": "mine.yaml"}
    assert platform_file(paths, named) == project / "mine.yaml"


def test_a_platform_file_that_is_asked_for_must_be_there(project: Path) -> None:
    with pytest.raises(PlatformFileNotFoundError, match=r"platform\.qa\.yaml"):
        platform_file(ProjectPaths(project), {"FLOE_PLATFORM_ENV": "qa"})
