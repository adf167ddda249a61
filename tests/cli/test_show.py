"""`floe runs`, `floe process` and `floe show`: what ran, and why it failed."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from floe.catalog import Catalog, open_ready_catalog
from floe.catalog.checks import FAIL, put_check, record_result
from floe.catalog.runs import get_run
from floe.cli import app
from floe.events.ingest import EventDoor, read_claim
from tests.events.factory import run_id

DAY = date(2026, 9, 1)
REASON = "[UNRESOLVED_COLUMN] A column `amuont` cannot be resolved. line 3 pos 7"
SQL = "select\n  id,\n  amuont\nfrom trades\nwhere id > 0\n"


@pytest.fixture
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catalog]:
    """An empty catalog, set by FLOE_CATALOG_URL."""
    url = f"sqlite:///{tmp_path}/catalog.db"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FLOE_CATALOG_URL", url)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "floe.yaml").write_text("name: shop\n")
    opened = open_ready_catalog(url)
    yield opened
    opened.close()


def tell(catalog: Catalog, job: str, kind: str, **more: Any) -> str:
    """Report an event of a run."""
    namespace, _, name = job.rpartition("/")
    facets: dict[str, Any] = {
        "floe": {"businessDate": DAY.isoformat(), **more.get("own", {})},
        **more.get("facets", {}),
    }
    if more.get("parent"):
        facets["parent"] = {
            "run": {"runId": more["parent"]},
            "job": {"namespace": "p", "name": "p"},
        }
    if more.get("error"):
        facets["errorMessage"] = {"message": more["error"], "stackTrace": "at Main.java:7"}
    event = {
        "eventType": kind,
        "eventTime": f"2026-09-01T06:{'00' if kind == 'START' else '30'}:00Z",
        "producer": "urn:test",
        "run": {"runId": run_id(job), "facets": facets},
        "job": {"namespace": namespace, "name": name, "facets": more.get("job_facets", {})},
        "inputs": more.get("inputs", []),
        "outputs": more.get("outputs", []),
    }
    door = EventDoor(catalog)
    for wrong in door.submit([read_claim(msgspec.json.encode(event))]).result().values():
        raise wrong
    door.close()
    return run_id(job)


def part(name: str, tag: str) -> dict[str, Any]:
    return {"namespace": "lake", "name": name, "facets": {"version": {"datasetVersion": tag}}}


def floe(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def fits(text: str) -> bool:
    return max(map(len, text.splitlines())) <= 80


def test_a_failed_run_is_shown_with_reason_sql_line_log_and_host(
    catalog: Catalog, tmp_path: Path
) -> None:
    own = {
        "engine": "spark_sql",
        "attempt": 2,
        "holder": "host7/4711/99/abc",
        "failed": {"step": None, "sql": SQL},
    }
    read = [part("raw.trades", "2026-09-01.1")]
    tell(catalog, "floe/shop/totals", "START", inputs=read)
    failed = tell(catalog, "floe/shop/totals", "FAIL", error=REASON, own=own, inputs=read)
    (tmp_path / ".floe/logs/runs").mkdir(parents=True)
    (tmp_path / ".floe/logs/runs/a.log").write_text("first\n" * 30 + "the last line\n")
    with catalog.writing() as session:
        get_run(session, failed).log_location = ".floe/logs/runs/a.log"
    shown = floe("show", failed[:8])
    assert fits(shown)
    assert "FAILED" in shown
    assert "A column `amuont` cannot" in shown
    assert ">    3    amuont" in shown
    assert "host host7, process 4711" in shown
    assert "1800.0 s" in shown
    assert "raw.trades" in shown
    assert "at Main.java:7" in shown
    assert shown.rstrip().endswith("the last line")
    answer = json.loads(floe("show", failed, "--json", "--log", "2"))
    assert answer["reason"] == REASON
    assert answer["sql"] == {"text": SQL, "step": None, "line": 3}
    assert (answer["attempt"], answer["seconds"]) == (2, 1800.0)
    assert answer["log"] == ["first", "the last line"]
    assert [one["version_tag"] for one in answer["inputs"]] == ["2026-09-01.1"]


def test_runs_and_process_show_the_reason_of_a_failure(catalog: Catalog) -> None:
    failed = tell(catalog, "floe/shop/totals", "FAIL", error=REASON)
    for words in (("runs",), ("process", "floe/shop/totals")):
        shown = floe(*words)
        assert fits(shown)
        assert f"{failed[:8]} FAILED: [UNRESOLVED_COLUMN]" in shown
    assert json.loads(floe("runs", "--json"))[0]["reason"] == REASON
    assert json.loads(floe("process", "floe/shop/totals", "--json"))["runs"][0]["reason"] == REASON


def test_a_dagster_run_is_listed_once_and_shown_with_its_step(catalog: Catalog) -> None:
    parent = tell(catalog, "dagster/shop/totals_job", "FAIL", own={"dagster": {"run": "d-1"}})
    step = {"dagster": {"run": "d-1", "step": "totals"}}
    child = tell(catalog, "floe/shop/totals", "FAIL", parent=parent, error=REASON, own=step)
    (listed,) = json.loads(floe("runs", "--json"))
    assert listed["run_uuid"] == child
    assert len(json.loads(floe("runs", "--parents", "--json"))) == 2
    assert len(json.loads(floe("runs", "dagster/shop/totals_job", "--json"))) == 1
    assert "Dagster run d-1, step totals" in " ".join(floe("show", child).split())
    up = json.loads(floe("show", child, "--json"))["parent"]
    assert (up["run_uuid"], up["process_key"]) == (parent, "dagster/shop/totals_job")
    down = json.loads(floe("show", parent, "--json"))
    assert [one["run_uuid"] for one in down["children"]] == [child]
    assert down["reason"] == f"floe/shop/totals failed: {REASON}"


def test_a_parent_that_failed_by_itself_stays_listed(catalog: Catalog) -> None:
    parent = tell(catalog, "dagster/shop/totals_job", "FAIL", error="the daemon was stopped")
    child = tell(catalog, "floe/shop/totals", "COMPLETE", parent=parent)
    listed = {one["run_uuid"] for one in json.loads(floe("runs", "--json"))}
    assert listed == {parent, child}


@pytest.mark.parametrize("job", ["dbt/shop/model.orders", "floe/shop/gold.orders", "AUTOSYS/BOX/X"])
def test_every_kind_of_run_shows_its_inputs_and_outputs(catalog: Catalog, job: str) -> None:
    made = tell(
        catalog,
        job,
        "COMPLETE",
        inputs=[part("raw.trades", "2026-09-01.1")],
        outputs=[part("risk.totals", "2026-09-01.1")],
        job_facets={"sql": {"query": "select 1"}},
        facets={"processing_engine": {"name": "spark", "version": "4.0.0"}},
    )
    shown = floe("show", made)
    assert fits(shown)
    assert "risk.totals" in shown
    assert "spark 4.0.0" in shown
    answer = json.loads(floe("show", made, "--json"))
    assert answer["reason"] is None
    assert answer["sql"]["text"] == "select 1"
    assert [one["version_tag"] for one in answer["outputs"]] == ["2026-09-01.1"]


def test_failed_checks_come_with_samples(catalog: Catalog) -> None:
    made = tell(catalog, "floe/shop/t", "COMPLETE", outputs=[part("risk.totals", "2026-09-01.1")])
    answer = json.loads(floe("show", made, "--json"))
    (output,) = answer["outputs"]
    with catalog.writing() as session:
        check = put_check(session, output["dataset_id"], "no_negative", kind="sql")
        record_result(
            session,
            check,
            FAIL,
            dataset_version_id=output["dataset_version_id"],
            failed_rows=2,
            detail={"message": "2 rows are negative", "samples": [{"id": 7, "amount": -1}]},
        )
    shown = floe("show", made)
    assert "Samples of no_negative: 2 rows are negative" in shown
    assert "amount=-1, id=7" in shown
    (outcome,) = json.loads(floe("show", made, "--json"))["checks"]
    assert (outcome["status"], outcome["samples"]) == ("FAIL", [{"id": 7, "amount": -1}])


def test_a_batch_shows_its_runs(catalog: Catalog) -> None:
    batch = run_id("batch")
    tell(catalog, "floe/shop/a", "COMPLETE", parent=batch)
    tell(catalog, "floe/shop/b", "FAIL", parent=batch, error=REASON)
    shown = floe("show", batch[:8])
    assert f"Batch {batch}" in shown
    assert "floe/shop/b" in shown


def test_an_unknown_run_is_not_found(catalog: Catalog) -> None:
    done = CliRunner().invoke(app, ["show", "deadbeef"])
    assert done.exit_code != 0
    assert "deadbeef" in str(done.exception)


def test_a_lost_run_names_its_ended_parent(catalog: Catalog) -> None:
    parent = tell(catalog, "dagster/shop/totals_job", "START")
    child = tell(catalog, "floe/shop/totals", "START", parent=parent)
    tell(catalog, "dagster/shop/totals_job", "COMPLETE")
    answer = json.loads(floe("show", child, "--json"))
    assert answer["status"] == "LOST"
    assert answer["reason"].startswith(f"Parent run {parent} has ended")
    assert f"{child[:8]} LOST: Parent run" in floe("runs")
