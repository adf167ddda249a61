"""Where a project and its platform are found."""

from pathlib import Path

import pytest

from floe.settings import (
    PlatformFileNotFoundError,
    ProjectNotFoundError,
    ProjectPaths,
    find_project,
    make_private_folder,
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


def mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def test_what_floe_keeps_is_for_its_owner_alone(project: Path) -> None:
    state = ProjectPaths(project).state_dir
    for _ in range(2):
        make_private_folder(state / "logs" / "runs")
        assert [mode(one) for one in (state, state / "logs", state / "logs" / "runs")] == [
            0o700
        ] * 3


def test_a_folder_that_is_shared_on_purpose_stays_so(project: Path) -> None:
    state = ProjectPaths(project).state_dir
    state.mkdir()
    state.chmod(0o2775)
    make_private_folder(state)
    make_private_folder(state / "logs")
    assert mode(state) == 0o775
    assert mode(state / "logs") == 0o700
