"""Of what did not start it is said whose fault that is."""

import pytest

from floe.execution.batch import BatchWish, run_batch
from tests.execution.workshop import TRADES, TUESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_what_waited_for_a_failure_is_skipped_with_whose_fault_it_is(shop: Workshop) -> None:
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
        report = run_batch(project.workspace, project.sparks, BatchWish(TUESDAY))
    outcomes = {one.process: (one.state, one.reason) for one in report.outcomes}
    assert outcomes["first"][0] == "FAILED"
    assert outcomes["second"] == ("SKIPPED", "'first' failed")
    assert outcomes["third"] == ("SKIPPED", "'first' failed")
