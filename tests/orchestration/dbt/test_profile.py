"""dbt finds the platform's Spark by a profile that floe writes, unless there is one already."""

from pathlib import Path

import yaml

from floe.orchestration.dbt.dbt_project import DbtProject, ensure_profile, find_dbt
from floe.orchestration.loading import load
from tests.orchestration.dbt.bank import FLOE_YAML
from tests.orchestration.projects import make_project


def project_of(folder: Path) -> DbtProject:
    project = find_dbt(load(folder))
    assert project is not None
    return project


def test_profile_is_written_for_the_target_without_secrets(bank: Path) -> None:
    written = yaml.safe_load((ensure_profile(project_of(bank)) / "profiles.yml").read_text())
    assert written["bank"]["target"] == "development"
    output = written["bank"]["outputs"]["development"]
    assert (output["type"], output["method"]) == ("spark", "session")
    assert "token" not in output


def test_target_of_floe_yaml_is_the_target_of_the_profile(bank: Path) -> None:
    make_project(bank, FLOE_YAML + "orchestration: {dbt: {target: night}}\n")
    written = yaml.safe_load((ensure_profile(project_of(bank)) / "profiles.yml").read_text())
    assert written["bank"]["target"] == "night"


def test_profile_of_the_user_is_used_unchanged(bank: Path) -> None:
    more = "orchestration: {dbt: {profiles_dir: profiles}}\n"
    make_project(bank, FLOE_YAML + more, {"profiles/profiles.yml": "bank: {}\n"})
    folder = ensure_profile(project_of(bank))
    assert folder == bank / "profiles"
    assert (folder / "profiles.yml").read_text() == "bank: {}\n"
