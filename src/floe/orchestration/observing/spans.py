"""Runs as spans of a trace: the Dagster run is the trace, each run in it a span.

All ids follow from those of the runs, so that who tells of a run twice tells of the same span.
The catalog keeps them with the run; a collector gets them where one is configured.
"""

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from floe import __version__
from floe.orchestration.observing.reports import Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from floe.execution.site import Site

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
PATH = "/v1/traces"


@dataclass(frozen=True)
class Span:
    """A run as a part of a trace. Ids are hexadecimal, as OpenTelemetry writes them."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: datetime
    end: datetime | None

    def facet(self) -> dict[str, Any]:
        """Return it as the catalog keeps it."""
        known = {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "startTime": self.start.isoformat(),
            "endTime": None if self.end is None else self.end.isoformat(),
        }
        return {name: value for name, value in known.items() if value is not None}


def span_of(report: Report) -> Span:
    """Return the span that a report is about."""
    run = report.run
    root = span_id_of(run.dagster_run)
    own = root if run.step is None else span_id_of(run.run_id)
    return Span(
        uuid.UUID(run.dagster_run).hex,
        own,
        None if run.step is None else root,
        run.process.name,
        run.started_at,
        None if report.kind == "START" else report.at,
    )


def span_id_of(run_id: str) -> str:
    """Return the span of a run: the same for ever."""
    return hashlib.sha256(run_id.encode()).hexdigest()[:16]


def exporter_for(site: "Site") -> "Callable[[Sequence[Report]], None] | None":
    """Return what sends spans to the collector that is configured; None when there is none."""
    if not site.spec.observability.traces:
        return None
    given = site.platform.observability.otlp
    endpoint = None if given is None else given.url.rstrip("/") + PATH
    if endpoint is None and not any(site.environ.get(name) for name in ENDPOINT_VARIABLES):
        return None
    named = {} if given is None else given.headers
    headers = {name: site.reveal(value) for name, value in named.items()}
    return _Exporter(site, endpoint, headers).send


class _Exporter:
    """Sends spans by OTLP. What does not arrive is logged there, and is in the catalog anyway."""

    def __init__(self, site: "Site", endpoint: str | None, headers: Mapping[str, str]) -> None:
        # Heavy, and only where a collector is.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = OTLPSpanExporter(endpoint=endpoint, headers=dict(headers) or None)
        attributes = {"service.name": site.spec.name, **site.spec.observability.attributes}
        self._resource = Resource.create(attributes)
        self._scope = InstrumentationScope("floe", __version__)

    def send(self, reports: Sequence[Report]) -> None:
        """Send the spans of runs that have ended."""
        ended = [self._readable(one) for one in reports if one.kind != "START"]
        if ended:
            self._exporter.export(ended)

    def _readable(self, report: Report) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        span = span_of(report)

        def context(span_id: str) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(
                int(span.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags
            )

        failed = report.failure.message if report.failure else None
        status = Status(StatusCode.OK) if failed is None else Status(StatusCode.ERROR, failed)
        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=None if span.parent_id is None else context(span.parent_id),
            resource=self._resource,
            attributes=_attributes(report),
            kind=SpanKind.INTERNAL,
            status=status,
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end or span.start),
            instrumentation_scope=self._scope,
        )


def _attributes(report: Report) -> dict[str, Any]:
    run = report.run
    known = {
        "floe.process": run.process.key,
        "floe.run": run.run_id,
        "floe.business_date": run.business_date.isoformat(),
        "floe.partition": run.partition,
        "floe.attempt": run.attempt,
        "floe.outputs": [f"{one.dataset}@{one.tag}" for one in report.written] or None,
        "floe.rows": sum(one.rows or 0 for one in report.written) or None,
        "dagster.run_id": run.dagster_run,
        "dagster.step_key": run.step,
    }
    return {name: value for name, value in known.items() if value is not None}


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
