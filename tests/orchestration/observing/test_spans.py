"""Spans of runs, as a collector gets them."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from floe.execution.site import Site
from floe.orchestration.loading import load
from floe.orchestration.observing.reports import Failure, Observed, Report, Written
from floe.orchestration.observing.spans import exporter_for, span_of
from floe.spec.identity import floe_process
from floe.spec.platform import Endpoint
from tests.orchestration.projects import make_project

RUN = "0b5f27e0-6c4d-4d0c-9a5a-5f3a7b1c2d3e"
STEP = "7c1e5a52-93d5-5f0f-8f3e-1f2a3b4c5d6e"
BEGAN = datetime(2026, 9, 1, 6, tzinfo=UTC)


def report(kind: str = "COMPLETE", step: str | None = "bronze__raw") -> Report:
    run = Observed(
        RUN if step is None else STEP,
        floe_process("test", "bronze.raw"),
        RUN,
        BEGAN,
        date(2026, 9, 1),
        "ASSET",
        step=step,
    )
    failure = Failure("it broke") if kind == "FAIL" else None
    written = [Written("bronze.raw", "2026-09-01.1", rows=5)]
    end = BEGAN + timedelta(seconds=3)
    return Report(1, kind, end, run, written=written, failure=failure)  # type: ignore[arg-type]


def test_the_dagster_run_is_the_trace_and_the_parent_of_its_steps() -> None:
    whole, part = span_of(report(step=None)), span_of(report())
    assert whole.trace_id == part.trace_id == RUN.replace("-", "")
    assert whole.parent_id is None
    assert part.parent_id == whole.span_id != part.span_id
    assert span_of(report()) == part


def test_a_span_that_goes_on_has_no_end() -> None:
    assert span_of(report("START")).end is None


class Collector:
    """A collector that keeps what it gets."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, ExportTraceServiceRequest, str | None]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    import gzip

                    body = gzip.decompress(body)
                got = ExportTraceServiceRequest.FromString(body)
                collector.requests.append((self.path, got, self.headers.get("X-Key")))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return replace(load(make_project(tmp_path)).site, environ={"OTLP_KEY": "sesame"})


def with_collector(site: Site, url: str) -> Site:
    endpoint = Endpoint.model_validate({"url": url, "headers": {"X-Key": "secret://env/OTLP_KEY"}})
    observability = site.platform.observability.model_copy(update={"otlp": endpoint})
    platform = site.platform.model_copy(update={"observability": observability})
    return replace(site, platform=platform)


def test_without_a_collector_nothing_is_sent(site: Site) -> None:
    assert exporter_for(site) is None


def test_a_collector_gets_the_runs_that_ended(site: Site, collector: Collector) -> None:
    send = exporter_for(with_collector(site, collector.url))
    assert send is not None
    send([report("START"), report(), report("FAIL", step=None)])
    ((path, got, key),) = collector.requests
    assert (path, key) == ("/v1/traces", "sesame")
    spans = got.resource_spans[0].scope_spans[0].spans
    assert [one.trace_id.hex() for one in spans] == [RUN.replace("-", "")] * 2
    assert spans[0].parent_span_id == spans[1].span_id
    assert spans[0].end_time_unix_nano - spans[0].start_time_unix_nano == 3_000_000_000
    assert spans[1].status.message == "it broke"


def test_a_project_may_want_no_traces(site: Site, collector: Collector) -> None:
    quiet = site.spec.observability.model_copy(update={"traces": False})
    spec = site.spec.model_copy(update={"observability": quiet})
    assert exporter_for(with_collector(replace(site, spec=spec), collector.url)) is None
