"""`floe run` without Spark: refused calls, plans and messages."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from floe.cli import app
from floe.execution.planning import UnknownParameterError
from floe.execution.spark.session import SparkSessions
from floe.execution.workspace import UndeclaredError

FLOE_YAML = """
name: risk
calendar: TARGET
datasets:
  raw.trades:
    format: csv
    location: landing/{business_date}/*.csv
    schema: [{name: id, type: bigint}]
  raw.rates:
    format: csv
    location: rates/{business_date}.csv
    manifest: {kind: json}
    schema: [{name: ccy, type: string}]
  risk.totals: {}
  risk.report: {}
processes:
  totals:
    inputs: {trades: raw.trades, rates: raw.rates}
    outputs: {totals: risk.totals}
    sql: select count(*) as n from trades
    params: {level: 2}
  report:
    inputs: {totals: risk.totals}
    outputs: {report: risk.report}
    sql: select * from totals
"""
FRIDAY, SUNDAY = "2026-09-04", "2026-09-06"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose commands must not start Spark."""
    (tmp_path / "floe.yaml").write_text(FLOE_YAML)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("FLOE_CATALOG_URL", raising=False)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr(SparkSessions, "session", refuse)
    return tmp_path


def run(*words: str) -> Result:
    return CliRunner().invoke(app, ["run", *words])


def plans(*words: str) -> dict[str, Any]:
    return {one["process"]: one for one in json.loads(run(*words, "--dry-run", "--json").stdout)}


def test_an_invalid_parameter_is_refused_before_deliveries_are_received(home: Path) -> None:
    (home / "landing" / FRIDAY).mkdir(parents=True)
    (home / "landing" / FRIDAY / "a.csv").write_text("id\n1\n")
    result = run("totals", "-d", FRIDAY, "--param", "levle=3")
    assert isinstance(result.exception, UnknownParameterError)
    assert "'level'" in str(result.exception)


def test_a_failure_is_printed_as_json_with_the_same_exit_code() -> None:
    result = run("totals", "-d", FRIDAY, "--param", "levle=3", "--json")
    told = json.loads(result.stdout)
    assert (told["ok"], told["process"], told["error"]) == (
        False,
        "totals",
        "UnknownParameterError",
    )
    assert told["reason"] == str(result.exception)
    wrong = run("totals", "--all", "--json")
    assert json.loads(wrong.stdout)["error"] == "WrongCallError"
    assert getattr(wrong.exception, "exit_code", None) == 2


def test_a_failure_is_not_printed_as_json_without_the_option() -> None:
    assert run("totals", "-d", FRIDAY, "--param", "levle=3").stdout == ""


def test_a_plan_shows_waiting_deliveries(home: Path) -> None:
    assert plans("totals", "-d", FRIDAY)["totals"]["inputs"]["trades"]["delivery"] is None
    (home / "landing" / FRIDAY).mkdir(parents=True)
    (home / "landing" / FRIDAY / "a.csv").write_text("id\n1\n")
    inputs = plans("totals", "-d", FRIDAY)["totals"]["inputs"]
    assert inputs["trades"]["delivery"] == "has arrived and will be received"
    assert inputs["rates"]["delivery"] is None
    shown = run("totals", "-d", FRIDAY, "--dry-run").stdout
    assert "raw.trades has arrived and will be received" in shown
    assert "raw.rates no version yet" in shown


def test_a_run_for_a_non_business_day_warns_and_continues() -> None:
    said = f"{SUNDAY} (Sunday) is not a business day in TARGET, the calendar of 'totals'."
    assert plans("totals", "-d", SUNDAY)["totals"]["note"] == said
    assert plans("totals", "-d", FRIDAY)["totals"]["note"] is None
    result = run("totals", "-d", SUNDAY)
    assert said in result.stderr
    assert isinstance(result.exception, AssertionError)  # it went on to Spark


def finished_batch() -> str:
    """Record a batch whose runs have all succeeded."""
    from floe.catalog.processes import find_process
    from floe.catalog.runs import SUCCESS, finish_run
    from floe.execution.workspace import load_site, open_workspace
    from floe.settings import find_project
    from tests.catalog.graph import start_run

    batch = "0190a0f2-7b1c-7cc3-8f36-3c1f1d2c9a51"
    with (
        open_workspace(load_site(find_project(None))) as workspace,
        workspace.catalog.writing() as session,
    ):
        for number, name in enumerate(workspace.site.spec.processes):
            process = find_process(session, f"floe/risk/{name}")
            begun = start_run(
                session,
                batch.replace("0190", f"019{number + 1}"),
                process.process_id,
                business_date=date(2026, 9, 4),
                parent_run_uuid=batch,
            )
            finish_run(session, begun, SUCCESS)
    return batch


def test_resuming_a_finished_batch_does_nothing() -> None:
    batch = finished_batch()
    done = run("--resume", batch)
    assert done.exit_code == 0, done.exception
    assert done.stdout == f"Batch {batch} has succeeded: nothing to resume.\n"
    as_json = json.loads(run("--resume", batch[:8], "--json").stdout)
    assert as_json == {"batch": batch, "ok": True, "arrivals": [], "processes": []}


def test_a_plan_of_all_shows_versions_of_earlier_processes() -> None:
    """The plan must not show today's version: this plan itself supersedes it."""
    from floe.catalog.versions import READY, reserve_version
    from floe.execution.workspace import load_site, open_workspace
    from floe.settings import find_project

    with (
        open_workspace(load_site(find_project(None))) as workspace,
        workspace.catalog.writing() as session,
    ):
        number = workspace.dataset_id("risk.totals", session)
        reserve_version(session, number, date(2026, 9, 4), state=READY)
    planned = json.loads(run("--all", "--dry-run", "--date", FRIDAY, "--json").stdout)
    (report,) = [one for one in planned if one["process"] == "report"]
    assert report["inputs"]["totals"] == {
        "dataset": "risk.totals",
        "versions": ["2026-09-04.2"],
        "delivery": None,
        "made_by": "totals",
    }
    shown = run("--all", "--dry-run", "--date", FRIDAY).stdout
    assert "risk.totals 2026-09-04.2 (written by totals in this plan)" in shown
    # On its own, the process reads the existing version.
    (alone,) = json.loads(run("report", "--dry-run", "--date", FRIDAY, "--json").stdout)
    assert alone["inputs"]["totals"]["versions"] == ["2026-09-04.1"]
    assert alone["inputs"]["totals"]["made_by"] is None


@pytest.mark.parametrize("kind", ["dataset", "process"])
def test_an_unknown_name_is_answered_with_an_existing_command(kind: str) -> None:
    _, _, command = str(UndeclaredError(kind, "dbt/shop/orders", [])).rpartition("floe ")
    assert command in {one.name or one.callback.__name__ for one in app.registered_commands
                       if one.callback}  # fmt: skip
