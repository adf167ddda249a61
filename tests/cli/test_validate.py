"""floe validate: findings for people and for scripts, and a summary when all is right."""

import json
from pathlib import Path

import pytest
import typer

from floe.cli.validate import validate


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FLOE_PROJECT", "FLOE_PLATFORM_FILE", "FLOE_PLATFORM_ENV"):
        monkeypatch.delenv(name, raising=False)


def write(folder: Path, text: str) -> Path:
    (folder / "floe.yaml").write_text(text, encoding="utf-8")
    return folder


RIGHT = "name: credit-risk\ndatasets: {credit.exposure: {}, credit.limits: {}}\nprocesses: \n"
WRONG = "name: credit-risk\ntimezone: Mars\n"


def test_right_project_prints_what_it_declares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(write(tmp_path, RIGHT))
    assert capsys.readouterr().out == "credit-risk is valid: 2 datasets.\n"


def test_wrong_project_prints_findings_and_exits_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        validate(write(tmp_path, WRONG))
    assert ended.value.exit_code == 1
    assert capsys.readouterr().out.splitlines() == [
        "floe.yaml:2: timezone: 'Mars' is not a time zone. "
        "Write it as Area/City, such as Europe/London.",
        "1 finding.",
    ]


def test_findings_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        validate(write(tmp_path, WRONG), as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "ok": False,
        "findings": [
            {
                "file": "floe.yaml",
                "line": 2,
                "key": "timezone",
                "message": "'Mars' is not a time zone",
                "hint": "Write it as Area/City, such as Europe/London.",
            }
        ],
    }


def test_right_project_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    validate(write(tmp_path, RIGHT), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"ok": True, "findings": []}


def test_demo_project_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    validate(Path(__file__).parents[2] / "demo" / "credit_risk")
    assert capsys.readouterr().out.startswith("credit-risk is valid: ")
