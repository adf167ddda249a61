"""The only place that reads the clock. All times are UTC and aware."""

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

# Business dates outside are typing errors. Inside, adding a zone, a calendar or an offset to a date
# never leaves what Python and the databases can hold.
FIRST_DATE, LAST_DATE = date(1900, 1, 1), date(2199, 12, 31)
DATE_RANGE = f"from {FIRST_DATE} to {LAST_DATE}"


def now() -> datetime:
    """Return the current moment in UTC."""
    return datetime.now(UTC)


def is_business_date(day: date) -> bool:
    """Tell whether a date is in the range that business dates have."""
    return FIRST_DATE <= day <= LAST_DATE


def today(zone: str) -> date:
    """Return today's date in a time zone: the default business date there."""
    return now().astimezone(ZoneInfo(zone)).date()
