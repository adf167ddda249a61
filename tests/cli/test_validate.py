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


SQL = """
name: night
datasets:
  raw.trades: {schema: [{name: id, type: bigint}, {name: amount, type: double}]}
  raw.parties: {schema: [{name: id, type: bigint}]}
  raw.other: {}
  risk.totals: {}
processes:
  totals:
    inputs: {trades: raw.trades, parties: raw.parties, other: raw.other}
    outputs: {t: risk.totals}
"""


@pytest.mark.parametrize(
    ("work", "key"),
    [
        ("sql: sql/totals.sql", "processes.totals.sql: sql/totals.sql gives"),
        ("sql: select id, amount as ID from trades", "processes.totals.sql: the query gives"),
        (
            "steps: [{name: a, sql: select 1 as x}, {name: t, sql: sql/totals.sql}]",
            "processes.totals.steps[1].sql: sql/totals.sql gives",
        ),
    ],
)
def test_a_query_with_two_columns_of_one_name_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], work: str, key: str
) -> None:
    (tmp_path / "sql").mkdir()
    query = "select * from trades join parties on trades.id = parties.id"
    (tmp_path / "sql" / "totals.sql").write_text(query)
    with pytest.raises(typer.Exit):
        validate(write(tmp_path, f"{SQL}    {work}\n"))
    said, count = capsys.readouterr().out.splitlines()
    assert said == (
        f"floe.yaml:12: {key} several columns named 'id'. Name each column of the result once."
    )
    assert count == "1 finding."


@pytest.mark.parametrize(
    "work",
    [
        "sql: select trades.id, amount from trades join parties on trades.id = parties.id",
        # What an input without a schema has is not known.
        "sql: select * from trades join other on trades.id = other.id",
        "sql: select count(*), sum(amount) from trades",
        "sql: this is not sql",
    ],
)
def test_a_query_that_may_be_right_is_no_finding(tmp_path: Path, work: str) -> None:
    validate(write(tmp_path, f"{SQL}    {work}\n"))
