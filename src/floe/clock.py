"""The only place that reads the clock. All times are UTC and aware."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

# Dates outside this range are typing errors. Within it, adding time zones, calendars and offsets
# never exceeds the range of Python and the databases.
FIRST_DATE, LAST_DATE = date(1900, 1, 1), date(2199, 12, 31)
DATE_RANGE = f"from {FIRST_DATE} to {LAST_DATE}"


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def is_business_date(day: date) -> bool:
    """Tell whether a date is in the range of business dates."""
    return FIRST_DATE <= day <= LAST_DATE


def today(zone: str) -> date:
    """Return today's date in a time zone."""
    return now().astimezone(ZoneInfo(zone)).date()
