"""Counters for Prometheus: requests by operation, and events by what became of them.

Counting is on the way of every request, showing is not: so numbers are kept plainly, and take
Prometheus' shape when somebody asks for them.
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
    """How long the requests of one operation took."""

    def __init__(self) -> None:
        self.total = 0.0
        self.counts = [0] * (len(SECONDS) + 1)

    def note(self, seconds: float) -> None:
        """Count one."""
        self.total += seconds
        self.counts[bisect_left(SECONDS, seconds)] += 1

    def buckets(self) -> list[tuple[str, float]]:
        """How many took no longer than each limit."""
        limits = [*map(str, map(float, SECONDS)), "+Inf"]
        return list(zip(limits, map(float, accumulate(self.counts)), strict=True))


class Metrics:
    """What an app has counted since it started."""

    def __init__(self) -> None:
        self._requests: Counter[tuple[str, int]] = Counter()
        self._timings: defaultdict[str, Timing] = defaultdict(Timing)
        self._events: Counter[str] = Counter()
        self._lock = Lock()

    def count_request(self, operation: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        with self._lock:
            self._requests[operation, status] += 1
            self._timings[operation].note(seconds)

    def count_events(self, outcome: str, count: int = 1) -> None:
        """Count events: committed, refused or to be sent again."""
        if count:
            with self._lock:
                self._events[outcome] += count

    def show(self) -> bytes:
        """Return all counters as Prometheus reads them, and what the process uses."""
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
        """Give the counters their names, as a collector of prometheus_client does."""
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
                "Seconds from request to answer.",
                labels=("operation",),
            )
            for operation, timing in self._timings.items():
                timings.add_metric((operation,), timing.buckets(), timing.total)
            events = CounterMetricFamily(
                "floe_events", "Events by what became of them.", labels=("outcome",)
            )
            for outcome, count in self._events.items():
                events.add_metric((outcome,), count)
        yield from (requests, timings, events)
