"""The keys of a time window: read, written, and checked against its cron expression."""

from collections.abc import Iterator
from datetime import date, datetime

from croniter import croniter

from floe.spec.orchestration.partitions import TimeWindow


def parse_key(window: TimeWindow, key: str) -> datetime | None:
    """Return the moment a key stands for, in the window's own zone; None when it is no key."""
    try:
        return datetime.strptime(key, window.fmt)  # noqa: DTZ007 - wall time of the window's zone
    except ValueError:
        return None


def parse_bound(window: TimeWindow, bound: str) -> datetime | None:
    """Return the moment of a `start` or `end`: a key, or a plain date."""
    moment = parse_key(window, bound)
    if moment is not None:
        return moment
    try:
        return datetime.combine(date.fromisoformat(bound), datetime.min.time())
    except ValueError:
        return None


def ticks(window: TimeWindow, start: datetime) -> Iterator[datetime]:
    """Yield the beginnings of windows from a moment on."""
    if croniter.match(window.cron_schedule, start):
        yield start
    steps = croniter(window.cron_schedule, start)
    while True:
        yield steps.get_next(datetime)


def is_tick(window: TimeWindow, moment: datetime) -> bool:
    """Tell whether a window begins at a moment."""
    return bool(croniter.match(window.cron_schedule, moment))
