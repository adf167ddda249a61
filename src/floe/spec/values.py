"""Value types of the spec: durations, times, dates, zones, cron and others.

Each type has a parser, an error message, and an example of a valid value.
"""

import re
import shlex
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Annotated, Any
from zoneinfo import available_timezones

from croniter import CroniterBadDateError, CroniterError, croniter
from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from floe.spec.base import only_text, text_schema, value_error
from floe.spec.nearby import nearest, suggest
from floe.spec.yaml_tree import typed

_UNITS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile("".join(rf"(?:([0-9]{{1,9}}){unit})?" for unit in _UNITS))
# Keeps date arithmetic within the range of Python's dates.
LONGEST = timedelta(days=365_250)
_DURATION_HINT = "Write it as 30s, 20m, 1h30m or 90d."


@lru_cache(maxsize=4096)
def parse_duration(value: str | timedelta) -> timedelta:
    """Parse a duration such as `20m`, `1h30m` or `90d`."""
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if value else None
    if match is None:
        raise value_error(f"'{value}' is not a duration", _DURATION_HINT, "20m")
    counts = zip(match.groups(), _UNITS.values(), strict=True)
    seconds = sum(int(count) * size for count, size in counts if count)
    if seconds > LONGEST.total_seconds():
        raise value_error(f"'{value}' is too long", "A duration must be at most 1000 years.", "20m")
    return timedelta(seconds=seconds)


def format_duration(duration: timedelta) -> str:
    """Format a duration as `1h30m`, which parse_duration can read."""
    rest = int(duration.total_seconds())
    parts = []
    for unit, size in list(_UNITS.items())[1:]:
        count, rest = divmod(rest, size)
        parts += [f"{count}{unit}"] if count else []
    return "".join(parts) or "0s"


_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")


def parse_time(value: str | time) -> time:
    """Parse a time of day such as `06:30` or `06:30:15`."""
    if isinstance(value, time):
        return value
    match = _TIME.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise value_error(f"'{value}' is not a time of day", 'Write it as "06:30".', "06:30")
    hour, minute, second = (int(part) for part in match.groups(default="0"))
    return time(hour, minute, second)


_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def parse_date(value: str | date) -> date:
    """Parse a date such as `2026-09-01`."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    try:
        if isinstance(value, str) and _ISO_DATE.fullmatch(value):
            return date.fromisoformat(value)
    except ValueError:
        pass
    raise value_error(f"'{value}' is not a date", "Write it as 2026-09-01.", "2026-09-01")


Duration = Annotated[
    timedelta,
    BeforeValidator(only_text(parse_duration, timedelta)),
    PlainSerializer(format_duration, when_used="json"),
    text_schema("20m", "A duration: 30s, 20m, 1h30m, 90d."),
]
TimeOfDay = Annotated[
    time,
    BeforeValidator(only_text(parse_time, time)),
    text_schema("06:30", "A time of day: 06:30."),
]
Date = Annotated[
    date,
    BeforeValidator(only_text(parse_date, date)),
    text_schema("2026-09-01", "A date: 2026-09-01."),
]


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


@cache
def check_zone(name: str) -> str:
    """Accept a name from the IANA time zone database."""
    if name in _zones():
        return name
    city = name.replace(" ", "_").lower()
    near = next((zone for zone in sorted(_zones()) if zone.lower().endswith(f"/{city}")), None)
    near = near or nearest(name, sorted(_zones()))
    hint = f"Did you mean '{near}'?" if near else "Write it as Area/City, such as Europe/London."
    raise value_error(f"'{name}' is not a time zone", hint, "UTC")


_MACROS = frozenset(
    {"@hourly", "@daily", "@midnight", "@weekly", "@monthly", "@yearly", "@annually"}
)
_CRON_HINT = 'Write minute, hour, day, month and weekday, such as "0 6 * * 1-5".'


@lru_cache(maxsize=4096)
def check_cron(expression: str) -> str:
    """Accept five cron fields or a macro such as @daily; reject those that never fire."""
    if expression.startswith("@"):
        if expression in _MACROS:
            return expression
        hint = suggest(expression, _MACROS, _CRON_HINT)
        raise value_error(f"'{expression}' is not a cron expression", hint, "0 6 * * *")
    if len(expression.split()) != 5:
        message = f"'{expression}' has {len(expression.split())} fields; a cron expression has 5"
        raise value_error(message, _CRON_HINT, "0 6 * * *")
    _try_cron(expression)
    return expression


def _try_cron(expression: str) -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    try:
        croniter(expression, start, max_years_between_matches=8).get_next()
    except CroniterBadDateError:
        raise value_error(f"'{expression}' never fires", _CRON_HINT, "0 6 * * *") from None
    except (CroniterError, ValueError, KeyError):
        message = f"'{expression}' is not a cron expression"
        raise value_error(message, _CRON_HINT, "0 6 * * *") from None


Zone = Annotated[
    str, AfterValidator(check_zone), text_schema("Europe/London", "An IANA time zone.")
]
Cron = Annotated[
    str,
    AfterValidator(check_cron),
    text_schema("0 6 * * 1-5", "Five cron fields, or a macro such as @daily."),
]


def _parse_share(value: object) -> float:
    text = str(value).strip()
    try:
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < float("inf"):
        raise value_error(f"'{value}' is not a share", "Write it as 20% or 0.2.", "20%")
    return share


Share = Annotated[float, BeforeValidator(_parse_share), text_schema("20%", "A share: 20%, 0.2.")]


def _split_command(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError:
        hint = "Close the quotes, or write a list: [java, -jar, scoring.jar]."
        raise value_error("the command has an unclosed quote", hint, "true") from None


Command = Annotated[
    tuple[str, ...],
    BeforeValidator(_split_command),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _wrap_in_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


OneOrMany = Annotated[
    tuple[str, ...],
    BeforeValidator(_wrap_in_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A single text or a list of texts."""
AnyValue = Annotated[Any, PlainValidator(typed), WithJsonSchema({})]
"""A value of any type; unquoted numbers and booleans keep their type."""
