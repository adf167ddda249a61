"""Planning uses a single catalog connection, and checks which run is repeated."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import QueuePool

from floe.events.ingest import read_claim
from floe.execution.planning import OtherProcessError, RunOptions, plan_run
from tests.events.factory import event, recently, run_id
from tests.execution.workshop import TOTAL_SQL, TOTALS, TRADES, TUESDAY, Workshop


@pytest.fixture
def shop(tmp_path: Path) -> Workshop:
    workshop = Workshop(tmp_path, None)
    totals = {"inputs": {"trades": "raw.trades"}, "sql": TOTAL_SQL, "outputs": {"t": "risk.totals"}}
    workshop.declare({"raw.trades": TRADES, "risk.totals": TOTALS}, {"totals": totals})
    return workshop


def test_a_plan_needs_no_second_connection(shop: Workshop) -> None:
    # Were all runs of a batch to hold one and wait for another, none would ever get it.
    with shop.open() as project, ExitStack() as held:
        engine = project.workspace.catalog.engine
        pool = engine.pool
        assert isinstance(pool, QueuePool)
        pool._timeout = 0.1
        for _ in range(pool.size() + pool._max_overflow - 1):
            held.enter_context(engine.connect())
        plan = plan_run(project.workspace, RunOptions("totals", TUESDAY), whole=False)
        assert plan.outputs["t"].tag == "2026-09-01.1"


def test_a_run_of_another_process_is_not_repeated(shop: Workshop) -> None:
    with shop.open() as project:
        claim = read_claim(event("COMPLETE", recently(0), "theirs", "other"))
        assert project.workspace.door.submit([claim]).result(timeout=30) == {}
        options = RunOptions("totals", TUESDAY, as_run=run_id("theirs"))
        with pytest.raises(OtherProcessError) as caught:
            plan_run(project.workspace, options, whole=False)
    wanted = f"Run {run_id('theirs')} is a run of AUTOSYS/other, not of 'totals'."
    assert str(caught.value) == wanted
