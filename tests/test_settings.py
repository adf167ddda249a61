"""Where a project and its platform are found."""

from pathlib import Path

import pytest

from floe.settings import (
    PlatformFileNotFoundError,
    ProjectNotFoundError,
    ProjectPaths,
    find_project,
    make_private_file,
    make_private_folder,
    platform_file,
    tighten_state,
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


def test_a_state_folder_of_before_is_closed_and_others_stay_as_they_are(project: Path) -> None:
    state = ProjectPaths(project).state_dir
    state.mkdir()
    state.chmod(0o2775)
    project.chmod(0o755)
    make_private_folder(state / "logs")
    assert [mode(one) for one in (project, state, state / "logs")] == [0o755, 0o700, 0o700]


def test_everything_in_a_state_folder_of_before_is_closed(project: Path) -> None:
    state = ProjectPaths(project).state_dir
    loose = [state / "catalog.db", state / "catalog.db-wal", state / "logs" / "api.log"]
    data, target = state / "lake" / "t" / "part.parquet", project / "elsewhere.txt"
    for file in (*loose, data, target):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        file.chmod(0o644)
    (state / "link").symlink_to(target)
    state.chmod(0o755)
    tighten_state(state, leave=[state / "lake"])
    assert [mode(file) for file in loose] == [0o600] * 3
    assert [mode(folder) for folder in (state, state / "logs")] == [0o700] * 2
    assert [mode(data), mode(target)] == [0o644] * 2


def test_a_new_file_is_private_and_one_outside_stays_as_it_is(project: Path) -> None:
    for path in (project / "new.db", project / "shared.db"):
        make_private_file(path)
        assert mode(path) == 0o600
    (project / "shared.db").chmod(0o660)
    make_private_file(project / "shared.db")
    assert mode(project / "shared.db") == 0o660
