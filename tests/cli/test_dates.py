"""Dates at their bounds: every option accepts them or says what it accepts."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from floe.cli import app
from floe.cli.context import parse_business_date
from tests.cli.test_run import FLOE_YAML

OUT_OF_RANGE = ("0001-01-01", "1899-12-31", "2200-01-01", "9999-12-31")
BOUNDS = ("1900-01-01", "2199-12-31")


def dated_options() -> list[tuple[str, list[str]]]:
    """List every command with `--date`, with its other required arguments."""
    needs = {
        "run": ["totals", "--dry-run"],
        "why": ["totals"],
        "register-dataset": ["a.b"],
        "register-process": ["BOX/JOB", "STARTED"],
    }
    commands: Any = typer.main.get_command(app)
    dated = [
        name
        for name, command in commands.commands.items()
        if any("--date" in param.opts for param in getattr(command, "params", ()))
    ]
    return [(name, [name, *needs.get(name, [])]) for name in dated]


DATED = dated_options()


@pytest.fixture(autouse=True)
def _project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "floe.yaml").write_text(
        FLOE_YAML.replace(
            "{totals: risk.totals}\n    outputs: {report",
            "{totals: {dataset: risk.totals, mapping: previous_business_day}}\n"
            "    outputs: {report",
        )
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.delenv("FLOE_CATALOG_URL", raising=False)


def test_every_command_with_a_date_is_listed_here() -> None:
    assert {"run", "runs", "why", "register-dataset"} <= {name for name, _ in DATED}


@pytest.mark.parametrize("day", OUT_OF_RANGE)
@pytest.mark.parametrize(("name", "words"), DATED, ids=[name for name, _ in DATED])
def test_a_date_out_of_range_is_refused_with_the_range(
    name: str, words: list[str], day: str
) -> None:
    done = CliRunner().invoke(app, [*words, "--date", day])
    said = done.output + str(done.exception)
    assert done.exit_code != 0, name
    assert "Overflow" not in said
    assert "1900-01-01" in said
    assert "2199-12-31" in said


@pytest.mark.parametrize("day", BOUNDS)
@pytest.mark.parametrize("process", ["totals", "report"])
def test_the_first_and_the_last_date_can_be_planned_and_explained(process: str, day: str) -> None:
    for words in (["run", process, "--dry-run"], ["why", process], ["runs"]):
        done = CliRunner().invoke(app, [*words, "--date", day], catch_exceptions=False)
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("day", OUT_OF_RANGE)
def test_a_partition_that_is_a_date_has_the_same_range(day: str) -> None:
    done = CliRunner().invoke(app, ["run", "totals", "--partition", day, "--dry-run"])
    assert done.exit_code == 2
    assert "2199-12-31" in done.output


@pytest.mark.parametrize("text", ["20260901", "2026-W36-2", "tomorrow", "2026-02-30", ""])
def test_an_invalid_date_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a date"):
        parse_business_date(text)
