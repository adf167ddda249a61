"""`floe register-dataset` and `floe register-process`, as a legacy job calls them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from floe.cli.register import register_dataset, register_process
from floe.client import BadReportError
from tests.client.fake_api import FakeApi

app = typer.Typer()
app.command()(register_dataset)
app.command()(register_process)


@pytest.fixture(autouse=True)
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host where the API is down."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setenv("FLOE_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeApi]:
    with FakeApi() as api:
        monkeypatch.setenv("FLOE_API_URL", api.url)
        yield api


def floe(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def said(result: Result) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_a_dataset_version_is_reported_with_all_options(api: FakeApi) -> None:
    result = floe(
        "register-dataset", "credit.positions", "--version", "v1", "--date", "2026-09-01",
        "--rows", "10", "--size", "99", "--path", "/data/p.csv", "--job", "AUTOSYS/EOD/LOAD",
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "credit.positions received.\n")
    (event,) = api.taken
    (output,) = event["outputs"]
    assert event["eventType"] == "COMPLETE"
    assert event["run"]["facets"]["floe"]["businessDate"] == "2026-09-01"
    assert output["facets"]["version"]["datasetVersion"] == "v1"
    assert output["facets"]["path"]["path"] == "/data/p.csv"
    assert output["outputFacets"]["outputStatistics"]["rowCount"] == 10
    assert event["job"]["name"] == "EOD/LOAD"


def test_start_and_success_of_a_process_are_one_run(api: FakeApi) -> None:
    floe("register-process", "AUTOSYS/EOD/LOAD", "STARTED", "--input", "market.fx@v3")
    result = floe(
        "register-process", "AUTOSYS/EOD/LOAD", "FAILED", "--error", "no feed", "--output", "a.b"
    )
    assert result.exit_code == 0
    start, end = api.taken
    assert (start["eventType"], end["eventType"]) == ("START", "FAIL")
    assert start["run"]["runId"] == end["run"]["runId"]
    assert start["inputs"][0]["facets"]["version"]["datasetVersion"] == "v3"
    assert end["run"]["facets"]["errorMessage"]["message"] == "no feed"


def test_a_report_queued_on_disk_exits_with_0() -> None:
    result = floe("register-dataset", "credit.positions")
    assert result.exit_code == 0
    assert "saved on disk, not delivered yet: cannot reach http://127.0.0.1:1" in result.stdout


def test_require_delivery_exits_with_75_while_floe_is_down() -> None:
    result = floe("register-dataset", "credit.positions", "--require-delivery", "--json")
    assert result.exit_code == 75
    assert said(result)["state"] == "spooled"


def test_json_has_the_run_id(api: FakeApi) -> None:
    result = floe("register-process", "AUTOSYS/EOD/LOAD", "STARTED", "--json")
    assert said(result) == {
        "state": "delivered",
        "run_id": api.taken[0]["run"]["runId"],
        "reason": "",
    }


def test_a_refused_report_exits_with_1(api: FakeApi) -> None:
    api.judge = lambda _: (422, {"detail": "$.job: is wrong"})
    result = floe("register-dataset", "credit.positions")
    assert result.exit_code == 1
    assert "$.job: is wrong" in result.stderr


def test_a_reason_with_a_full_stop_gets_no_second_one(api: FakeApi) -> None:
    api.gate = lambda: (429, {"detail": "Too many wrong tokens. Try again in 54 seconds."})
    result = floe("register-dataset", "credit.positions")
    assert "Try again in 54 seconds. It is sent with this host's next report" in result.stdout


def test_a_lost_report_exits_with_74(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLOE_SPOOL", str(tmp_path / "file" / "spool"))
    result = floe("register-dataset", "credit.positions")
    assert result.exit_code == 74
    assert "LOST" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("register-dataset", "a.b", "--status", "LATE"), "Use one of: READY, FAILED."),
        (("register-process", "A/B", "DONE"), "Use one of: STARTED, RUNNING, SUCCESS"),
        (("register-process", "JOB", "STARTED"), "NAMESPACE/NAME, such as AUTOSYS/BOX/JOB"),
        (("register-dataset", "a.b", "--date", "soon"), "a date such as 2026-09-01"),
    ],
)
def test_an_invalid_report_exits_with_1(arguments: tuple[str, ...], words: str) -> None:
    result = floe(*arguments)
    assert isinstance(result.exception, BadReportError)
    assert result.exception.exit_code == 1
    assert words in str(result.exception)


def test_the_calls_import_neither_the_database_nor_the_models() -> None:
    code = (
        "import sys, typer; from floe.cli.register import register_dataset as call\n"
        "try: call('a.b')\n"
        "except typer.Exit: print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "floe.client" in loaded
    assert not {"sqlalchemy", "pydantic", "msgspec", "httpx", "floe.catalog"} & loaded
