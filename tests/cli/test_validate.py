"""`floe validate`: findings as text and JSON, and a summary of a valid project."""

import json
from pathlib import Path
from typing import Any

import pytest
import typer

from floe.cli.compile import compile as compile_project
from floe.cli.run import run
from floe.cli.validate import validate
from floe.spec import SpecError


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FLOE_PROJECT", "FLOE_PLATFORM_FILE", "FLOE_PLATFORM_ENV"):
        monkeypatch.delenv(name, raising=False)


def write(folder: Path, text: str) -> Path:
    (folder / "floe.yaml").write_text(text, encoding="utf-8")
    return folder


RIGHT = "name: credit-risk\ndatasets: {credit.exposure: {}, credit.limits: {}}\nprocesses: \n"
WRONG = "name: credit-risk\ntimezone: Mars\n"


def test_a_valid_project_prints_a_summary(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    validate(write(tmp_path, RIGHT))
    assert capsys.readouterr().out == "credit-risk is valid: 2 datasets.\n"


def test_an_invalid_project_prints_findings_and_exits_with_1(
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
        "warnings": [],
    }


def test_a_valid_project_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    validate(write(tmp_path, RIGHT), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"ok": True, "findings": [], "warnings": []}


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
        ("sql: sql/totals.sql", "processes.totals.sql: sql/totals.sql line 1:"),
        ("sql: select id, amount as ID from trades", "processes.totals.sql: the query line 1:"),
        (
            "steps: [{name: a, sql: select 1 as x}, {name: t, sql: sql/totals.sql}]",
            "processes.totals.steps[1].sql: sql/totals.sql line 1:",
        ),
    ],
)
def test_a_query_with_duplicate_columns_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], work: str, key: str
) -> None:
    (tmp_path / "sql").mkdir()
    query = "select * from trades join parties on trades.id = parties.id"
    (tmp_path / "sql" / "totals.sql").write_text(query)
    with pytest.raises(typer.Exit):
        validate(write(tmp_path, f"{SQL}    {work}\n"))
    said, count = capsys.readouterr().out.splitlines()
    assert said == (
        f"floe.yaml:12: {key} the result has several columns named 'id'. "
        "Name each column of the result once."
    )
    assert count == "1 finding."


@pytest.mark.parametrize(
    "work",
    [
        "sql: select trades.id, amount from trades join parties on trades.id = parties.id",
        # The columns of an input without a schema are unknown.
        "sql: select * from trades join other on trades.id = other.id",
        "sql: select count(*), sum(amount) from trades",
        "sql: this is not sql",
    ],
)
def test_a_query_that_may_be_valid_is_not_a_finding(tmp_path: Path, work: str) -> None:
    validate(write(tmp_path, f"{SQL}    {work}\n"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (
            "select id,\n  amuont\nfrom trades",
            "sql/totals.sql line 2: no column 'amuont' in raw.trades. Did you mean 'amount'?",
        ),
        (
            "select zz from trades join parties using (id)",
            "sql/totals.sql line 1: no column 'zz' in raw.trades or raw.parties. "
            "Choose one of: amount, id.",
        ),
    ],
)
def test_an_unknown_column_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], query: str, message: str
) -> None:
    (tmp_path / "sql").mkdir()
    (tmp_path / "sql" / "totals.sql").write_text(query)
    with pytest.raises(typer.Exit):
        validate(write(tmp_path, f"{SQL}    sql: sql/totals.sql\n"))
    line, _ = capsys.readouterr().out.splitlines()
    assert line == f"floe.yaml:12: processes.totals.sql: {message}"


def test_compile_refuses_an_unknown_column(tmp_path: Path) -> None:
    project = write(tmp_path, f"{SQL}    sql: select amuont from trades\n")
    with pytest.raises(SpecError, match=r"no column .amuont. in raw\.trades\. Did you mean"):
        compile_project(project)
    assert not (tmp_path / ".floe").exists()


@pytest.mark.parametrize("call", [{"process": "totals"}, {"every": True}])
def test_a_run_refuses_an_unknown_column(tmp_path: Path, call: dict[str, Any]) -> None:
    project = write(tmp_path, f"{SQL}    sql: select amuont from trades\n")
    with pytest.raises(SpecError, match=r"no column .amuont. in raw\.trades"):
        run(**call, project=project)


CHAIN = """
name: night
datasets:
  raw.trades: {schema: [{name: id, type: bigint}, {name: amount, type: double}]}
  mid.trades: {schema: [{name: id, type: bigint}]}
  risk.totals: {}
processes:
  middle:
    inputs: {trades: raw.trades}
    outputs: {t: mid.trades}
    WORK
  totals:
    inputs: {trades: mid.trades}
    outputs: {t: risk.totals}
    sql: select id, COLUMN from trades
"""


@pytest.mark.parametrize(
    ("work", "column"),
    [
        # A writer may add columns to the declared ones.
        ("sql: select *, 1 as extra from trades", "extra"),
        ("sql: select * from trades", "amount"),
        # The columns that a function adds are unknown.
        ("function: work:middle", "nope"),
    ],
)
def test_columns_that_a_writer_adds_are_not_findings(
    tmp_path: Path, work: str, column: str
) -> None:
    (tmp_path / "work.py").write_text("def middle(trades): return trades")
    validate(write(tmp_path, CHAIN.replace("WORK", work).replace("COLUMN", column)))


def test_a_column_that_no_known_writer_adds_is_a_finding(tmp_path: Path) -> None:
    text = CHAIN.replace("WORK", "sql: select id from trades").replace("COLUMN", "amount")
    with pytest.raises(typer.Exit):
        validate(write(tmp_path, text))
