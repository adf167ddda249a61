"""`floe init`: every template is a valid project, and what it says to type next works."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.cli.init import FilesExistError, NotAFolderError, TemplateName, project_name
from floe.settings import ProjectPaths
from floe.spec import load_project, validate_project

TEMPLATES = get_args(TemplateName)
RESULTS = {
    "sql": ["AT 2 140.49", "DE 1 75.00", "FR 1 310.00"],
    "python": ["AT 2 140.49", "DE 1 75.00", "FR 1 310.00"],
    "dbt": ["2026-01-05 2 195.50", "2026-01-06 2 329.99"],
}


def init(*words: str) -> Result:
    return CliRunner().invoke(app, ["init", *words])


def next_commands(output: str) -> list[str]:
    """The commands that the output suggests, without their comments."""
    lines = output.partition("\nNext:\n")[2].splitlines()
    return [line.partition("#")[0].strip() for line in lines if line.strip()]


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_is_a_valid_project_named_after_its_folder(
    tmp_path: Path, template: str
) -> None:
    folder = tmp_path / "My payments"
    result = init(str(folder), "--template", template)
    assert result.exit_code == 0, result.output
    assert validate_project(ProjectPaths(folder), {}).findings == ()
    assert load_project(ProjectPaths(folder), {}).spec.name == "my-payments"
    assert ".floe/" in (folder / ".gitignore").read_text()


def test_init_defaults_to_the_sql_template_and_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = init()
    assert (tmp_path / "sql" / "by_country.sql").is_file()
    assert not any(command.startswith("cd ") for command in next_commands(result.output))


@pytest.mark.parametrize("template", TEMPLATES)
def test_an_existing_file_stops_init(tmp_path: Path, template: str) -> None:
    (tmp_path / "floe.yaml").write_text("name: mine\n")
    result = init(str(tmp_path), "--template", template)
    assert isinstance(result.exception, FilesExistError)
    assert "floe.yaml" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["floe.yaml"]
    assert (tmp_path / "floe.yaml").read_text() == "name: mine\n"


def test_a_file_instead_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    assert isinstance(init(str(tmp_path / "notes")).exception, NotAFolderError)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("risk", "risk"), ("Credit Risk (EU)", "credit-risk-eu"), ("2026", "2026"), ("…", "project")],
)
def test_the_project_is_named_after_its_folder(folder: str, name: str) -> None:
    assert project_name(Path("/work") / folder) == name


@pytest.mark.slow
@pytest.mark.java
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_suggested_commands_run_and_show_the_result(tmp_path: Path, template: str) -> None:
    folder = tmp_path / "first"
    commands = next_commands(init(str(folder), "--template", template).output)
    assert commands.pop(0) == f"cd {shlex.quote(str(folder))}"
    outputs = {}
    try:
        for command in commands:
            if command != "floe up":  # runs until it is stopped; tests/cli/test_up.py covers it
                outputs[command] = run_floe(folder, command)
    finally:
        run_floe(folder, "floe spark stop")
    shown = next(text for command, text in outputs.items() if command.startswith("floe read"))
    rows = [re.sub(r"\s+", " ", line).strip() for line in shown.splitlines()]
    assert set(RESULTS[template]) <= set(rows), shown


def run_floe(folder: Path, command: str) -> str:
    program, *words = shlex.split(command)
    path = Path(sys.executable).with_name(program)
    environ = {key: text for key, text in os.environ.items() if not key.startswith("FLOE_")}
    environ.pop("DAGSTER_HOME", None)
    done = subprocess.run(
        [str(path), *words],
        cwd=folder,
        env={**environ, "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout
