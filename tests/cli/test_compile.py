"""`floe compile`: write the compiled file, and report whether it is stale."""

from pathlib import Path

import pytest
import typer

from floe.cli.compile import compile as compile_command
from floe.spec import SpecError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FLOE_PROJECT", raising=False)
    (tmp_path / "floe.yaml").write_text("name: credit-risk\n", encoding="utf-8")
    return tmp_path


def test_compile_prints_the_file_it_wrote(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compile_command(project)
    assert (project / ".floe/compiled_artifacts.json").is_file()
    assert capsys.readouterr().out.startswith(
        "Wrote .floe/compiled_artifacts.json from 1 source, hash "
    )


def test_compile_refuses_an_invalid_project(project: Path) -> None:
    (project / "floe.yaml").write_text("name: credit-risk\nfnord: 1\n", encoding="utf-8")
    with pytest.raises(SpecError, match=r"floe\.yaml:2: fnord: unknown key"):
        compile_command(project)
    assert not (project / ".floe").exists()


def test_check_reports_a_missing_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        compile_command(project, check=True)
    assert ended.value.exit_code == 1
    assert "does not exist. Run: floe compile." in capsys.readouterr().err


def test_check_reports_what_changed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compile_command(project)
    compile_command(project, check=True)
    assert capsys.readouterr().out.splitlines()[1] == (
        ".floe/compiled_artifacts.json is up to date."
    )
    (project / "floe.yaml").write_text("name: credit-risk\nversion: '2'\n", encoding="utf-8")
    with pytest.raises(typer.Exit) as ended:
        compile_command(project, check=True)
    assert ended.value.exit_code == 1
    assert "is stale: floe.yaml changed." in capsys.readouterr().err
