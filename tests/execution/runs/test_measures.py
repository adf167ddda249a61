"""The measures of a run: the rows of every step, and Spark's own figures."""

from typing import Any

import pytest

from floe.catalog.runs import describe_run, get_run
from floe.execution.input_deliveries import receive_for
from tests.execution.workshop import TRADES, TUESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]


def test_rows_of_a_step_with_several_readers_are_counted(shop: Workshop) -> None:
    steps = [
        {"name": "big", "sql": "select * from trades where amount > 6"},
        {"name": "some", "sql": "select sum(amount) as whole from big"},
        {"name": "out", "sql": "select id, amount / whole as share from big, some"},
    ]
    process = {"inputs": {"trades": "raw.trades"}, "outputs": {"out": "risk.out"}, "steps": steps}
    # Iceberg counts rows without reading a file; for a share it has to.
    check = {"kind": "range", "column": "share", "min": 0, "max": 1}
    shop.declare({"raw.trades": TRADES, "risk.out": {"checks": [check]}}, {"make": process})
    shop.deliver(TUESDAY, (1, 10.0), (2, 5.5), (3, 7.0), (4, 8.0))
    with shop.open() as project:
        specs = project.workspace.site.spec.processes.values()
        receive_for(project.workspace, project.sparks, specs, TUESDAY)
        result = project.run("make")
        with project.workspace.catalog.reading() as session:
            run = get_run(session, result.run_id)
            counts = {
                step.step_name: step.row_count for step in describe_run(session, run.run_uuid).steps
            }
            facets: Any = run.facets_json
    assert (counts["big"], counts["some"], counts["write out"]) == (3, 1, 3)
    measured = facets["floe"]["spark"]["out"]
    assert measured["filesWritten"] >= 1
    assert measured["check"]["filesRead"] == measured["filesWritten"]
    assert measured["check"]["bytesRead"] > 0
