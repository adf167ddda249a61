"""Why a process does or does not run for a date, in one sentence."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from floe.catalog.leases import acquire_lease
from floe.catalog.processes import find_process
from floe.catalog.runs import FAILED, SUCCESS, finish_run, record_inputs
from floe.catalog.version_queries import get_version_of
from floe.catalog.versions import (
    READY,
    REJECTED,
    WRITTEN,
    advance_version,
    reserve_version,
    retract_version,
)
from floe.execution.os_processes import new_holder
from floe.execution.process_status import explain_process
from floe.execution.runner import run_lease_name
from floe.spec.identity import floe_process
from tests.catalog.graph import start_run
from tests.events.factory import run_id
from tests.execution.workshop import TOTAL_SQL, TOTALS, TRADES, TUESDAY, OpenShop, Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    """Delivered trades → totals → report."""
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
        dataset_id = project.workspace.dataset_id(dataset, session)
        reserve_version(session, dataset_id, TUESDAY, state=READY)


def make(project: OpenShop, dataset: str, run_uuid: str) -> None:
    """Create a READY version of a run."""
    with project.workspace.catalog.writing() as session:
        dataset_id = project.workspace.dataset_id(dataset, session)
        reserve_version(session, dataset_id, TUESDAY, state=READY, produced_by_run_id=run_uuid)


def take_back(project: OpenShop, dataset: str, tag: str, reason: str) -> None:
    with project.workspace.catalog.writing() as session:
        dataset_id = project.workspace.dataset_id(dataset, session)
        retract_version(
            session, get_version_of(session, dataset_id, tag), reason=reason, actor="alice"
        )


def reject(project: OpenShop, dataset: str, reason: str, checksum: str | None = None) -> None:
    with project.workspace.catalog.writing() as session:
        dataset_id = project.workspace.dataset_id(dataset, session)
        version = reserve_version(session, dataset_id, TUESDAY, state=WRITTEN, checksum=checksum)
        advance_version(session, version, REJECTED, reason=reason)


def run(project: OpenShop, process: str, status: str | None, holder: str = "", **read: str) -> str:
    """Create a run that read these tags and ended with this status."""
    key = floe_process(project.workspace.site.spec.name, process).key
    uuid = run_id(f"{process} {read}")
    with project.workspace.catalog.writing() as session:
        begun = start_run(
            session,
            uuid,
            find_process(session, key).process_id,
            business_date=TUESDAY,
            facets_json={
                "floe": {
                    "inputs": {alias: [tag] for alias, tag in read.items()},
                    **({"holder": holder} if holder else {}),
                }
            },
        )
        inputs = project.workspace.site.spec.processes[process].inputs
        record_inputs(
            session,
            begun,
            [
                get_version_of(
                    session, project.workspace.dataset_id(inputs[alias].dataset, session), tag
                )
                for alias, tag in read.items()
            ],
        )
        if status:
            finish_run(session, begun, status)
    return uuid


def test_the_team_that_delivers_a_missing_input_is_named(shop: Workshop) -> None:
    with shop.open() as project:
        assert why(project, "totals") == (
            "waits",
            "totals waits for raw.trades of 2026-09-01, delivered by Front Office.",
        )


def test_the_reason_is_followed_upstream_to_its_cause(shop: Workshop) -> None:
    with shop.open() as project:
        state, sentence = why(project, "report")
    assert state == "waits"
    assert sentence == (
        "report waits for risk.totals of 2026-09-01, written by totals, which waits for "
        "raw.trades of 2026-09-01, delivered by Front Office."
    )


def test_a_process_with_all_inputs_is_ready(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        deliver(project, "risk.totals")
        assert why(project, "totals") == (
            "ready",
            "totals is ready for 2026-09-01 and starts by schedule or by hand.",
        )
        assert why(project, "report") == ("ready", "report is ready for 2026-09-01.")


def test_a_process_that_has_read_all_inputs_is_done(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        run(project, "totals", SUCCESS, trades="2026-09-01.1")
        assert why(project, "totals") == (
            "done",
            "totals has run for 2026-09-01; its inputs have not changed since.",
        )
        deliver(project, "raw.trades")
        assert why(project, "totals")[0] == "ready"


def test_a_run_that_failed_can_be_resumed(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        failed = run(project, "totals", FAILED, trades="2026-09-01.1")
        assert why(project, "totals") == (
            "failed",
            f"totals failed for 2026-09-01. Run: floe run --resume {failed}",
        )
        assert f"written by totals, which failed in {failed}." in why(project, "report")[1]


def test_an_active_run_is_reported(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        running = run(project, "totals", None, trades="2026-09-01.1")
        sentence = f"totals is running for 2026-09-01 (run {running})."
        assert why(project, "totals") == ("runs", sentence)
        assert f"written by totals, which is running (run {running})." in why(project, "report")[1]


def test_a_rejected_delivery_is_named_with_its_reason_and_owner(shop: Workshop) -> None:
    with shop.open() as project:
        reject(project, "raw.trades", "3 rows have no id")
        assert why(project, "totals") == (
            "blocked",
            "totals cannot run for 2026-09-01: raw.trades 2026-09-01.1, delivered by Front "
            "Office, was rejected: 3 rows have no id.",
        )
        state, sentence = why(project, "report")
    assert state == "waits"
    assert "which cannot run: raw.trades 2026-09-01.1, delivered by Front Office, was rejected" in (
        sentence
    )


def test_a_rejected_correction_blocks_although_the_previous_version_is_ready(
    shop: Workshop,
) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        reject(project, "raw.trades", "3 rows have no id")
        assert why(project, "totals")[0] == "blocked"


def test_a_retracted_input_is_named_with_who_retracted_it(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        take_back(project, "raw.trades", "2026-09-01.1", "wrong feed.")
        assert why(project, "totals") == (
            "blocked",
            "totals cannot run for 2026-09-01: raw.trades 2026-09-01.1, delivered by Front "
            "Office, was retracted by alice: wrong feed.",
        )


def test_an_output_that_was_retracted_is_not_done(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        make(project, "risk.totals", run(project, "totals", SUCCESS, trades="2026-09-01.1"))
        assert why(project, "totals")[0] == "done"
        take_back(project, "risk.totals", "2026-09-01.1", "wrong currency")
        assert why(project, "totals") == (
            "retracted",
            "totals has run for 2026-09-01, but its output risk.totals 2026-09-01.1 was retracted "
            "by alice: wrong currency. Run it again: floe run totals --date 2026-09-01",
        )


def test_an_input_made_from_a_retracted_feed_is_stale(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        make(project, "risk.totals", run(project, "totals", SUCCESS, trades="2026-09-01.1"))
        take_back(project, "raw.trades", "2026-09-01.1", "wrong feed")
        assert why(project, "report") == (
            "stale",
            "report could run for 2026-09-01, but risk.totals 2026-09-01.1, written by totals, "
            "was computed from raw.trades 2026-09-01.1, which was retracted by alice: wrong feed. "
            "Recompute the input first.",
        )
        run(project, "report", SUCCESS, totals="2026-09-01.1")
        assert why(project, "report")[1].startswith("report has run for 2026-09-01, but")


def test_a_run_whose_os_process_is_gone_is_dead(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        holder = new_holder().split("/")
        gone = "/".join([*holder[:2], "1", holder[3]])
        dead = run(project, "totals", None, gone, trades="2026-09-01.1")
        state, sentence = why(project, "totals")
        assert (state, sentence.endswith(f"floe run --resume {dead}")) == ("dead", True)
        assert f"whose run {dead} was killed" in why(project, "report")[1]


def test_a_run_on_another_host_is_dead_without_its_lease(shop: Workshop) -> None:
    with shop.open() as project:
        deliver(project, "raw.trades")
        run(project, "totals", None, "elsewhere/7/99/abc", trades="2026-09-01.1")
        assert why(project, "totals")[0] == "dead"
        name = run_lease_name(project.workspace, "totals", TUESDAY)
        with project.workspace.catalog.writing() as session:
            assert acquire_lease(session, name, "elsewhere/7/99/def", timedelta(minutes=1))
        assert why(project, "totals")[0] == "runs"


def test_a_delivery_that_nobody_has_read_has_arrived(shop: Workshop) -> None:
    shop.deliver(TUESDAY, (1, 2.0))
    with shop.open() as project:
        assert why(project, "totals") == (
            "arrived",
            "totals can run for 2026-09-01: raw.trades of 2026-09-01, delivered by Front Office, "
            "has arrived and has not been read. Run: floe run totals --date 2026-09-01",
        )
        # A corrected file counts even where the one before was rejected or read.
        reject(project, "raw.trades", "3 rows have no id", checksum="before")
        assert why(project, "totals")[0] == "arrived"


def test_json_holds_the_facts_behind_the_sentence(shop: Workshop) -> None:
    with shop.open() as project:
        reject(project, "raw.trades", "3 rows have no id")
    answer = json.loads(shop.floe("why", "totals", "-d", "2026-09-01", "--json").stdout)
    (lacking,) = answer["waits_for"]
    assert answer["state"] == "blocked"
    assert (lacking["state"], lacking["reason"]) == ("rejected", "3 rows have no id")
    assert lacking["whose"] == "delivered by Front Office"


def test_a_missing_database_is_a_missing_input(shop: Workshop) -> None:
    table = {"format": "jdbc", "options": {"connection": "ref", "table": "clients"}}
    copy = {"inputs": {"x": "ref.clients"}, "sql": "SELECT * FROM x", "outputs": {"y": "out.copy"}}
    shop.declare({"ref.clients": table, "out.copy": {}}, {"copy": copy})
    shop.write("connections: {ref: {url: 'sqlite:///ref.db'}}", "platform.yaml")
    with shop.open() as project:
        state, sentence = why(project, "copy")
        assert state == "waits"
        assert "the SQLite file ref.db of the connection 'ref' does not exist" in sentence
        (shop.root / "ref.db").touch()
        assert why(project, "copy")[0] == "arrived"
