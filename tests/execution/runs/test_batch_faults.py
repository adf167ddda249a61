"""A process that is not started names the cause."""

import pytest

from floe.execution.batch import BatchOptions, run_batch
from tests.execution.workshop import TRADES, TUESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_a_skipped_process_names_the_upstream_failure(shop: Workshop) -> None:
    def process(read: str, write: str, sql: str) -> dict[str, object]:
        return {"inputs": {"i": read}, "outputs": {"o": write}, "sql": sql}

    shop.declare(
        {"raw.trades": TRADES, "risk.a": {}, "risk.b": {}, "risk.c": {}},
        {
            "first": process("raw.trades", "risk.a", "select raise_error('no') as x from i"),
            "second": process("risk.a", "risk.b", "select * from i"),
            "third": process("risk.b", "risk.c", "select * from i"),
        },
    )
    shop.deliver(TUESDAY, (1, 10.0))
    with shop.open() as project:
        report = run_batch(project.workspace, project.sparks, BatchOptions(TUESDAY))
    outcomes = {outcome.process: (outcome.state, outcome.reason) for outcome in report.outcomes}
    assert outcomes["first"][0] == "FAILED"
    assert outcomes["second"] == ("SKIPPED", "'first' failed")
    assert outcomes["third"] == ("SKIPPED", "'first' failed")
