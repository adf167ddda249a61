"""`floe register`, and the commands that show what it registered."""

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from floe.cli import app, main

DEMO = Path(__file__).parents[2] / "demo" / "credit_risk"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the demo, with a catalog of its own."""
    folder = tmp_path / "credit_risk"
    shutil.copytree(DEMO, folder, ignore=shutil.ignore_patterns(".floe"))
    monkeypatch.chdir(folder)
    monkeypatch.delenv("FLOE_CATALOG_URL", raising=False)
    return folder


def floe(*words: str) -> Result:
    return CliRunner().invoke(app, words, catch_exceptions=False)


@pytest.mark.usefixtures("project")
def test_the_demo_is_registered_and_registering_again_changes_nothing() -> None:
    first = floe("register")
    assert first.exit_code == 0
    assert "created dataset credit.exposure" in first.stdout
    assert "nothing to change" in floe("register").stdout


@pytest.mark.usefixtures("project")
def test_register_prints_its_changes_as_json() -> None:
    report = json.loads(floe("register", "--json").stdout)
    assert report["project"] == "credit-risk"
    created = [line for line in report["changes"] if line["action"] == "created"]
    assert {
        "action": "created",
        "kind": "dataset",
        "name": "credit.exposure",
        "detail": "",
    } in created
    assert json.loads(floe("register", "--json").stdout)["changes"] == []


@pytest.mark.usefixtures("project")
def test_a_dataset_shows_owner_sla_columns_checks_writers_and_readers() -> None:
    floe("register")
    shown = json.loads(floe("dataset", "credit.exposure", "--json").stdout)
    assert shown["full_name"] == "lake/credit.exposure"
    assert shown["status"] == "ACTIVE"
    assert shown["written_by"]
    assert shown["columns"]
    assert shown["checks"]
    text = floe("dataset", "credit.exposure").stdout
    for part in (shown["owner_team"], shown["columns"][0]["name"], shown["written_by"][0]):
        assert part in text


@pytest.mark.usefixtures("project")
def test_a_process_shows_what_it_reads_and_writes() -> None:
    floe("register")
    writer = json.loads(floe("dataset", "credit.exposure", "--json").stdout)["written_by"][0]
    shown = json.loads(floe("process", writer, "--json").stdout)
    assert "lake/credit.exposure" in shown["outputs"]
    assert shown["inputs"]
    assert "lake/credit.exposure" in floe("process", writer).stdout


@pytest.mark.usefixtures("project")
def test_processes_are_listed_page_by_page() -> None:
    assert "No process is registered yet" in floe("processes").stdout
    floe("register")
    everything = json.loads(floe("processes", "--json").stdout)
    assert everything["next"] is None
    first = json.loads(floe("processes", "--json", "--limit", "1").stdout)
    assert first["processes"] == everything["processes"][:1]
    rest = json.loads(floe("processes", "--json", "--after", first["next"]).stdout)
    assert first["processes"] + rest["processes"] == everything["processes"]
    assert "There are more" in floe("processes", "--limit", "1").stdout


def test_the_catalog_can_be_read_while_floe_yaml_is_invalid(project: Path) -> None:
    floe("register")
    file = project / "floe.yaml"
    file.write_text(file.read_text() + "\nnonsense: true\n")
    assert floe("datasets").exit_code == 0


@pytest.mark.usefixtures("project")
def test_an_error_is_one_sentence_and_exit_code_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    floe("register")
    monkeypatch.setattr("sys.argv", ["floe", "dataset", "credit.exposur"])
    with pytest.raises(SystemExit, match="1"):
        main()
    assert capsys.readouterr().err.strip() == (
        "No dataset named 'credit.exposur' is registered. Did you mean 'credit.exposure'?"
    )


def test_a_catalog_url_works_without_a_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    floe("register")
    monkeypatch.setenv("FLOE_CATALOG_URL", f"sqlite:///{project}/.floe/catalog.db")
    monkeypatch.chdir(tmp_path)
    assert "credit.exposure" in floe("datasets").stdout
