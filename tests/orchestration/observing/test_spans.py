"""Spans of runs, as a collector gets them."""

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from floe.execution.site import Site
from floe.execution.spans import span_exporter
from floe.orchestration.loading import load
from floe.orchestration.observing.reports import Failure, ObservedRun, Output, Report, span_of
from floe.spec.identity import floe_process
from floe.spec.platform import Endpoint
from tests.collector import Collector, running_collector
from tests.orchestration.projects import make_project

RUN = "0b5f27e0-6c4d-4d0c-9a5a-5f3a7b1c2d3e"
STEP = "7c1e5a52-93d5-5f0f-8f3e-1f2a3b4c5d6e"
BEGAN = datetime(2026, 9, 1, 6, tzinfo=UTC)


def report(kind: str = "COMPLETE", step: str | None = "bronze__raw") -> Report:
    run = ObservedRun(
        RUN if step is None else STEP,
        floe_process("test", "bronze.raw"),
        RUN,
        BEGAN,
        date(2026, 9, 1),
        "ASSET",
        step=step,
    )
    failure = Failure("it broke") if kind == "FAIL" else None
    outputs = [Output("bronze.raw", "2026-09-01.1", rows=5)]
    end = BEGAN + timedelta(seconds=3)
    return Report(1, kind, end, run, outputs=outputs, failure=failure)  # type: ignore[arg-type]


def test_the_dagster_run_is_the_trace_and_the_parent_of_its_steps() -> None:
    whole, part = span_of(report(step=None)), span_of(report())
    assert whole.trace_id == part.trace_id == RUN.replace("-", "")
    assert whole.parent_id is None
    assert part.parent_id == whole.span_id != part.span_id
    assert span_of(report()) == part


def test_a_span_that_goes_on_has_no_end() -> None:
    assert span_of(report("START")).end is None


@pytest.fixture
def collector() -> Iterator[Collector]:
    with running_collector() as collector:
        yield collector


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return replace(load(make_project(tmp_path)).site, environ={"OTLP_KEY": "sesame"})


def with_collector(site: Site, url: str) -> Site:
    endpoint = Endpoint.model_validate({"url": url, "headers": {"X-Key": "secret://env/OTLP_KEY"}})
    observability = site.platform.observability.model_copy(update={"otlp": endpoint})
    platform = site.platform.model_copy(update={"observability": observability})
    return replace(site, platform=platform)


def test_without_a_collector_nothing_is_sent(site: Site) -> None:
    assert span_exporter(site) is None


def test_a_collector_gets_the_runs_that_ended(site: Site, collector: Collector) -> None:
    send = span_exporter(with_collector(site, collector.url))
    assert send is not None
    send([span_of(each) for each in (report("START"), report(), report("FAIL", step=None))])
    ((path, spans, key),) = collector.requests
    assert (path, key) == ("/v1/traces", "sesame")
    assert [span.trace_id.hex() for span in spans] == [RUN.replace("-", "")] * 2
    assert spans[0].parent_span_id == spans[1].span_id
    assert spans[0].end_time_unix_nano - spans[0].start_time_unix_nano == 3_000_000_000
    assert spans[1].status.message == "it broke"


def test_a_collector_that_is_down_fails_nothing(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(socket.socket()) as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
    send = span_exporter(with_collector(site, url))
    assert send is not None
    send([span_of(report())])
    assert "Failed to export" in caplog.text


def test_a_project_may_want_no_traces(site: Site, collector: Collector) -> None:
    quiet = site.spec.observability.model_copy(update={"traces": False})
    spec = site.spec.model_copy(update={"observability": quiet})
    assert span_exporter(with_collector(replace(site, spec=spec), collector.url)) is None
