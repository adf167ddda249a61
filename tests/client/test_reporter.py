"""A block of Python as a run: its start, end and data, without affecting the job."""

from typing import Any

import pytest

import floe.client
from floe.client import BadReportError
from tests.client.fake_api import FakeApi

JOB = "AUTOSYS/EOD/LOAD"


def kinds(api: FakeApi) -> list[str]:
    return [event["eventType"] for event in api.taken]


def test_a_successful_run_reports_its_outputs(api: FakeApi) -> None:
    with floe.client.run(JOB, inputs=["market.fx"], business_date="2026-09-01") as run:
        run.input("ref.clients", version="v3")
        run.output("credit.positions", rows=10)
    start, end = api.taken
    assert kinds(api) == ["START", "COMPLETE"]
    assert start["run"]["runId"] == end["run"]["runId"] == run.run_id
    assert [dataset["name"] for dataset in end["inputs"]] == ["market.fx", "ref.clients"]
    assert end["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 10
    assert end["run"]["facets"]["floe"]["businessDate"] == "2026-09-01"


def test_a_failed_run_reports_the_error_and_raises_it_again(api: FakeApi) -> None:
    with pytest.raises(ZeroDivisionError), floe.client.run(JOB):
        1 / 0  # noqa: B018
    assert kinds(api) == ["START", "FAIL"]
    error = api.taken[1]["run"]["facets"]["errorMessage"]
    assert error["message"] == "ZeroDivisionError: division by zero"
    assert error["programmingLanguage"] == "python"
    assert "1 / 0" in error["stackTrace"]


@pytest.mark.parametrize(
    ("ending", "kind"),
    [
        (SystemExit(0), "COMPLETE"),
        (SystemExit(None), "COMPLETE"),
        (SystemExit(3), "FAIL"),
        (KeyboardInterrupt(), "ABORT"),
    ],
)
def test_the_exit_code_decides_the_status(api: FakeApi, ending: BaseException, kind: str) -> None:
    with pytest.raises(type(ending)), floe.client.run(JOB):
        raise ending
    assert kinds(api) == ["START", kind]


def test_a_job_runs_unchanged_while_floe_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOE_API_URL", "http://127.0.0.1:1")
    with floe.client.run(JOB) as run:
        run.output("credit.positions")
    with pytest.raises(ZeroDivisionError), floe.client.run(JOB):
        1 / 0  # noqa: B018
    assert floe.client.Client().spool.count_waiting() == 4


def test_each_call_of_a_decorated_function_is_a_run(api: FakeApi) -> None:
    @floe.client.run(JOB, outputs=["credit.positions"])
    def load(value: int) -> int:
        return value + 1

    assert [load(1), load(2)] == [2, 3]
    first, _, second, _ = (event["run"]["runId"] for event in api.taken)
    assert kinds(api) == ["START", "COMPLETE"] * 2
    assert first != second


def test_an_invalid_output_raises_on_the_line_that_adds_it(api: FakeApi) -> None:
    with (
        pytest.raises(BadReportError, match=r"rows must be .* got -1"),
        floe.client.run(JOB) as run,
    ):
        run.output("credit.positions", rows=-1)
    assert kinds(api) == ["START", "FAIL"]


def test_an_invalid_process_name_raises_before_the_work_starts() -> None:
    worked: list[Any] = []
    with pytest.raises(BadReportError, match="namespace is missing"), floe.client.run("LOAD"):
        worked.append(1)
    assert worked == []
