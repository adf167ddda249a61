"""Prometheus metrics: requests by operation, and events by outcome.

Every request is counted, so counters are plain numbers. They are converted to Prometheus' format
only when they are read.
"""

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Metric

MEDIA_TYPE = "text/plain; version=1.0.0; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Timing:
    """Durations of the requests of one operation."""

    def __init__(self) -> None:
        self.total = 0.0
        self.counts = [0] * (len(SECONDS) + 1)

    def note(self, seconds: float) -> None:
        """Count a request."""
        self.total += seconds
        self.counts[bisect_left(SECONDS, seconds)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """Return the number of requests up to each limit."""
        limits = [*map(str, map(float, SECONDS)), "+Inf"]
        return list(zip(limits, map(float, accumulate(self.counts)), strict=True))


class Metrics:
    """The counters of an app since it started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._timings: defaultdict[str, Timing] = defaultdict(Timing)
        self._events: Counter[str] = Counter()
        self._lock = Lock()

    def count_request(self, operation: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        with self._lock:
            self._requests[operation, status] += 1
            self._timings[operation].note(seconds)

    def count_events(self, outcome: str, count: int = 1) -> None:
        """Count events: committed, refused or retriable."""
        if count:
            with self._lock:
                self._events[outcome] += count

    def show(self) -> bytes:
        """Return all metrics in Prometheus' text format, including those of the process."""
        from prometheus_client import (
            CollectorRegistry,
            GCCollector,
            PlatformCollector,
            ProcessCollector,
            generate_latest,
        )

        registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=registry)
        registry.register(self)
        return generate_latest(registry)

    def collect(self) -> Iterator["Metric"]:
        """Yield the counters as metrics, as a collector of prometheus_client."""
        from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

        with self._lock:
            requests = CounterMetricFamily(
                "floe_http_requests",
                "Requests by operation and status.",
                labels=("operation", "status"),
            )
            for (operation, status), count in self._requests.items():
                requests.add_metric((operation, str(status)), count)
            timings = HistogramMetricFamily(
                "floe_http_request_seconds",
                "Seconds from request to response.",
                labels=("operation",),
            )
            for operation, timing in self._timings.items():
                timings.add_metric((operation,), timing.buckets(), timing.total)
            events = CounterMetricFamily("floe_events", "Events by outcome.", labels=("outcome",))
            for outcome, count in self._events.items():
                events.add_metric((outcome,), count)
        yield from (requests, timings, events)
