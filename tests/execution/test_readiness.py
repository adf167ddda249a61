"""Why a process does or does not run for a date, in one sentence."""

from pathlib import Path

import pytest

from floe.catalog.processes import find_process
from floe.catalog.runs import FAILED, SUCCESS, finish_run, start_run
from floe.catalog.versions import READY, reserve_version
from floe.execution.readiness import explain_process
from floe.spec.identity import floe_process
from tests.events.factory import run_id
from tests.execution.workshop import TOTAL_SQL, TOTALS, TRADES, TUESDAY, OpenShop, Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """Trades are delivered, totals are made of them, and a report of the totals."""
    workshop = Workshop(tmp_path, None)
    trades = {**TRADES, "owner": {"team": "Front Office"}}
    totals = {"inputs": {"trades": "raw.trades"}, "sql": TOTAL_SQL, "outputs": {"t": "risk.totals"}}
    report = {
        "trigger": "dataset",
        "inputs": {"totals": "risk.totals"},
        "sql": "SELECT * FROM totals",
        "outputs": {"r": "risk.report"},
    }
    workshop.declare(
        {"raw.trades": trades, "risk.totals": TOTALS, "risk.report": {}},
        {"totals": totals, "report": report},
    )
    return workshop


def why(project: OpenShop, process: str) -> tuple[str, str]:
    reason = explain_process(project.workspace, process, TUESDAY)
    return reason.state, reason.sentence


def deliver(project: OpenShop, dataset: str) -> None:
    with project.workspace.catalog.writing() as session:
        number = project.workspace.dataset_id(dataset, session)
        reserve_version(session, number, TUESDAY, state=READY)


def run(project: OpenShop, process: str, status: str | None, **read: str) -> str:
    """Leave a run that has read these tags, and has ended so."""
    key = floe_process(project.workspace.site.spec.name, process).key
    uuid = run_id(f"{process} {read}")
    with project.workspace.catalog.writing() as session:
        begun = start_run(
            session,
            uuid,
            find_process(session, key).process_id,
            business_date=TUESDAY,
            facets_json={"floe": {"inputs": {alias: [tag] for alias, tag in read.items()}}},
        )
        if status:
            finish_run(session, begun, status)
    return uuid


def test_whoever_delivers_what_is_missing_is_named(shop: Workshop) -> None:
    with shop.open() as project:
        assert why(project, "totals") == (
            "waits",
            "totals waits for raw.trades of 2026-09-01, delivered by Front Office.",
        )


def test_the_reason_is_followed_back_to_where_it_lies(shop: Workshop) -> None:
    with shop.open() as project:
        state, sentence = why(project, "report")
    assert state == "waits"
    assert sentence == (
        "report waits for risk.totals of 2026-09-01, written by totals, which waits for "
        "raw.trades of 2026-09-01, delivered by Front Office."
    )


def test_what_has_all_it_reads_is_ready(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        deliver(project, "risk.totals")
        assert why(project, "totals") == (
            "ready",
            "totals is ready for 2026-09-01, and a schedule or a person starts it.",
        )
        assert why(project, "report") == ("ready", "report is ready for 2026-09-01.")


def test_what_has_read_all_there_is_has_nothing_to_do(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        run(project, "totals", SUCCESS, trades="2026-09-01.1")
        assert why(project, "totals") == (
            "done",
            "totals has run for 2026-09-01 with all that there is.",
        )
        deliver(project, "raw.trades")
        assert why(project, "totals")[0] == "ready"


def test_a_run_that_failed_can_be_resumed(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        failed = run(project, "totals", FAILED, trades="2026-09-01.1")
        assert why(project, "totals") == (
            "failed",
            f"totals failed for 2026-09-01: floe run --resume {failed}",
        )
        assert f"written by totals, which failed in {failed}." in why(project, "report")[1]


def test_a_run_under_way_is_waited_for(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        running = run(project, "totals", None, trades="2026-09-01.1")
        assert why(project, "totals") == ("runs", f"totals runs for 2026-09-01, as {running}.")
        assert "written by totals, which runs." in why(project, "report")[1]
