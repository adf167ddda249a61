"""The only place that reads the clock. All times are UTC and aware."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo


def now() -> datetime:
    """Return the current moment in UTC."""
    return datetime.now(UTC)


def today(zone: str) -> date:
    """Return today's date in a time zone: the default business date there."""
    return now().astimezone(ZoneInfo(zone)).date()
