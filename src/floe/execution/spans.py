"""Runs as spans of a trace: stored in the catalog with the run, and sent to a collector by OTLP.

Ids are derived from run ids, so that a run that is reported twice has the same span.
"""

import hashlib
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from floe import __version__

if TYPE_CHECKING:
    from floe.execution.site import Site

ENDPOINT_VARIABLES = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
TRACES_PATH = "/v1/traces"
EXPORT_SECONDS = 2.0
"""Longest wait for a collector, retries included: a run must not wait for its monitoring."""


@dataclass(frozen=True)
class Span:
    """A run as a span of a trace. Ids are hexadecimal, as in OpenTelemetry."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start: datetime
    end: datetime | None
    error: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def facet(self) -> dict[str, Any]:
        """Return the span as the catalog stores it."""
        known = {
            "traceId": self.trace_id,
            "spanId": self.span_id,
            "parentSpanId": self.parent_id,
            "startTime": self.start.isoformat(),
            "endTime": None if self.end is None else self.end.isoformat(),
        }
        return {name: value for name, value in known.items() if value is not None}


def run_span(
    run_id: str,
    parent: str | None,
    name: str,
    start: datetime,
    end: datetime | None,
    *,
    error: str | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> Span:
    """Return the span of a run. Its parent run, if it has one, is the trace and the root span."""
    return Span(
        trace_id=uuid.UUID(parent or run_id).hex,
        span_id=_span_id(run_id),
        parent_id=None if parent is None else _span_id(parent),
        name=name,
        start=start,
        end=end,
        error=error,
        attributes={key: value for key, value in (attributes or {}).items() if value is not None},
    )


def _span_id(run_id: str) -> str:
    return hashlib.sha256(run_id.encode()).hexdigest()[:16]


def span_exporter(site: "Site") -> Callable[[Sequence[Span]], None] | None:
    """Return a function that sends ended spans to the configured collector, or None."""
    if not site.spec.observability.traces:
        return None
    otlp = site.platform.observability.otlp
    endpoint = None if otlp is None else otlp.url.rstrip("/") + TRACES_PATH
    if endpoint is None and not any(site.environ.get(name) for name in ENDPOINT_VARIABLES):
        return None
    declared = {} if otlp is None else otlp.headers
    headers = {name: site.reveal(value) for name, value in declared.items()}
    return _SpanExporter(site, endpoint, headers).send


class _SpanExporter:
    """Sends spans by OTLP. The exporter logs what it could not send; the catalog has it anyway."""

    def __init__(self, site: "Site", endpoint: str | None, headers: Mapping[str, str]) -> None:
        # Heavy, so imported only if there is a collector.
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        self._exporter = OTLPSpanExporter(
            endpoint=endpoint, headers=dict(headers) or None, timeout=EXPORT_SECONDS
        )
        attributes = {"service.name": site.spec.name, **site.spec.observability.attributes}
        self._resource = Resource.create(attributes)
        self._scope = InstrumentationScope("floe", __version__)

    def send(self, spans: Sequence[Span]) -> None:
        """Send the spans that have ended."""
        ended = [self._readable_span(span) for span in spans if span.end is not None]
        if ended:
            self._exporter.export(ended)

    def _readable_span(self, span: Span) -> Any:
        from opentelemetry.sdk.trace import ReadableSpan
        from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

        def context(span_id: str) -> SpanContext:
            flags = TraceFlags(TraceFlags.SAMPLED)
            return SpanContext(
                int(span.trace_id, 16), int(span_id, 16), is_remote=False, trace_flags=flags
            )

        error = span.error
        return ReadableSpan(
            name=span.name,
            context=context(span.span_id),
            parent=None if span.parent_id is None else context(span.parent_id),
            resource=self._resource,
            attributes=span.attributes,
            kind=SpanKind.INTERNAL,
            status=Status(StatusCode.OK) if error is None else Status(StatusCode.ERROR, error),
            start_time=_nanoseconds(span.start),
            end_time=_nanoseconds(span.end or span.start),
            instrumentation_scope=self._scope,
        )


def _nanoseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1_000_000) * 1_000
