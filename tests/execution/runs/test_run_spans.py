"""The spans that runs of processes leave in the catalog and at a collector."""

from typing import Any

import pytest
import yaml
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from floe.catalog.runs import get_run, list_runs
from floe.execution.input_deliveries import receive_for
from tests.collector import running_collector
from tests.execution.workshop import TRADES, TUESDAY, Workshop

pytestmark = [pytest.mark.java, pytest.mark.slow]

SUMS = {"inputs": {"trades": "raw.trades"}, "outputs": {"sums": "risk.sums"}}


def test_each_run_of_a_batch_is_a_span_of_one_trace(shop: Workshop) -> None:
    good = {**SUMS, "sql": "select sum(amount) as total from trades"}
    bad = {"inputs": {"trades": "raw.trades"}, "outputs": {"bad": "risk.bad"}, "sql": "select x"}
    datasets: dict[str, Any] = {"raw.trades": TRADES, "risk.sums": {}, "risk.bad": {}}
    shop.declare(datasets, {"good": good, "bad": bad})
    with running_collector() as collector:
        platform = yaml.safe_load((shop.root / "platform.yaml").read_text())
        platform["observability"] = {"otlp": {"url": collector.url}}
        shop.write(yaml.safe_dump(platform), "platform.yaml")
        done = shop.floe("run", "--all", "--date", str(TUESDAY), "--json", check=False)
        assert done.returncode == 1, done.stdout + done.stderr
        spans = {span.name: span for _, spans, _ in collector.requests for span in spans}
    assert set(spans) == {"good", "bad"}
    assert spans["good"].trace_id == spans["bad"].trace_id
    assert spans["good"].parent_span_id == spans["bad"].parent_span_id != b""
    assert spans["bad"].status.code == Status.STATUS_CODE_ERROR
    assert spans["good"].end_time_unix_nano > spans["good"].start_time_unix_nano
    with shop.open() as project, project.workspace.catalog.reading() as session:
        for run in list_runs(session):
            facets: Any = get_run(session, run.run_uuid).facets_json
            names = {span.span_id.hex() for span in spans.values()}
            assert facets["trace"]["spanId"] in names
            assert facets["trace"]["endTime"]


def test_a_single_run_is_the_root_of_its_own_trace(shop: Workshop) -> None:
    with shop.open() as project:
        processes = project.workspace.site.spec.processes.values()
        receive_for(project.workspace, project.sparks, processes, TUESDAY)
        result = project.run("totals")
        with project.workspace.catalog.reading() as session:
            facets: Any = get_run(session, result.run_id).facets_json
    assert facets["trace"]["traceId"] == result.run_id.replace("-", "")
    assert "parentSpanId" not in facets["trace"]
