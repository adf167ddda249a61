"""From `orchestration.partitions` to Dagster's definitions, and what their keys stand for."""

from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import replace
from datetime import date, datetime, time, timedelta

from dagster import (
    DagsterInvalidDefinitionError,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
    partition_loading_context,
)

from floe.clock import now
from floe.orchestration.loading import Loading
from floe.orchestration.parts import AnyPartitions, Parts
from floe.spec.calendars import Calendar
from floe.spec.identity import business_date_of_key
from floe.spec.orchestration import (
    DynamicPartitions,
    MultiPartitions,
    Partitions,
    StaticPartitions,
    TimeWindow,
)
from floe.spec.windows import parse_bound, ticks

_FIELDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""The macros of cron. Dagster sees what kind of window it is only by the five fields."""


def build_partitions(loading: Loading, parts: Parts) -> Parts:
    """Turn every partition definition of the project into one of Dagster's."""
    declared = loading.site.spec.orchestration.partitions
    made: dict[str, AnyPartitions] = {}
    # Those with several dimensions come last: they name others.
    for name in sorted(declared, key=lambda one: isinstance(declared[one], MultiPartitions)):
        path = ("orchestration", "partitions", name)
        try:
            made[name] = _build(loading, name, declared[name], made)
        except DagsterInvalidDefinitionError as error:
            raise loading.refusal(path, str(error).rstrip(".")) from error
    return replace(parts, partitions=made)


def _build(
    loading: Loading, name: str, partitions: Partitions, others: dict[str, AnyPartitions]
) -> AnyPartitions:
    match partitions:
        case StaticPartitions():
            return StaticPartitionsDefinition(list(partitions.partition_keys))
        case DynamicPartitions():
            return DynamicPartitionsDefinition(name=name)
        case TimeWindow():
            return _build_window(loading, partitions)
        case MultiPartitions():
            return _build_multi(loading, name, partitions, others)


def _build_multi(
    loading: Loading, name: str, partitions: MultiPartitions, others: dict[str, AnyPartitions]
) -> AnyPartitions:
    dimensions = {
        # A name of floe.yaml has no slash: what is declared in place takes nobody's name.
        dimension: others[inner]
        if isinstance(inner, str)
        else _build(loading, f"{name}/{dimension}", inner, others)
        for dimension, inner in partitions.partitions.items()
    }
    windows = [one for one, inner in dimensions.items() if _is_window(inner)]
    if len(windows) > 1:
        path = ("orchestration", "partitions", name, "partitions", windows[1])
        message = f"'{windows[0]}' and '{windows[1]}' are both dimensions of time"
        hint = "Keep one: the business date of a key must be clear."
        raise loading.refusal(path, message, hint)
    return MultiPartitionsDefinition(dimensions)


def _is_window(partitions: AnyPartitions) -> bool:
    return isinstance(partitions, TimeWindowPartitionsDefinition)


def _build_window(loading: Loading, window: TimeWindow) -> TimeWindowPartitionsDefinition:
    spec = loading.site.spec
    cron = _FIELDS.get(window.cron_schedule, window.cron_schedule)
    start = parse_bound(window, window.start)
    end = parse_bound(window, window.end) if window.end is not None else None
    assert start is not None, "the rules of floe.yaml have read it"
    exclusions: list[str | datetime] = []
    if window.calendar is not None:
        calendar = spec.calendar_named(window.calendar)
        exclusions = list(_exclusions(calendar, cron, start, end or _horizon(start)))
    return TimeWindowPartitionsDefinition(
        start=start,
        end=end,
        cron_schedule=cron,
        timezone=window.timezone or spec.timezone,
        fmt=window.fmt,
        end_offset=window.end_offset,
        exclusions=exclusions or None,
    )


def _horizon(start: datetime) -> datetime:
    """Return until when days without business are looked up: the end of the next decade.

    The days are part of the definition, and what Dagster remembers of a definition is lost when
    it changes. So it must be the same tomorrow, and long enough for a process that runs for years.
    """
    year = max(start.year, now().year)
    return datetime(year // 10 * 10 + 20, 1, 1)  # noqa: DTZ001 - wall time of the window's zone


def _exclusions(
    calendar: Calendar, cron: str, start: datetime, end: datetime
) -> Iterator[str | datetime]:
    """Yield the windows without business: weekends by one cron expression, holidays one by one.

    Dagster goes through what is listed with every question, so the list is kept short.
    """
    worked = {day.weekday() for day in calendar.remove}
    regular = calendar.weekend - worked
    if regular:
        minute, hour, _, month, _ = cron.split()
        weekdays = ",".join(str((weekday + 1) % 7) for weekday in sorted(regular))
        yield f"{minute} {hour} * {month} {weekdays}"
    for year in range(start.year, end.year + 1):
        days = calendar.holidays(year) | _weekends(calendar, calendar.weekend & worked, year)
        for day in sorted(days):
            if start.date() <= day < end.date():
                yield from _windows_of(cron, day)


def _weekends(calendar: Calendar, weekdays: Set[int], year: int) -> set[date]:
    """Return the days of weekends that have business now and then, and have none on that day."""
    if not weekdays:
        return set()
    days = (date(year, 1, 1) + timedelta(days=number) for number in range(366))
    return {day for day in days if day.weekday() in weekdays and not calendar.is_business_day(day)}


def _windows_of(cron: str, day: date) -> Iterator[datetime]:
    window = TimeWindow(type="time_window", start=day.isoformat(), cron_schedule=cron)
    for tick in ticks(window, datetime.combine(day, time())):
        if tick.date() != day:
            return
        yield tick


def business_date_of(partitions: AnyPartitions, key: str) -> date | None:
    """Return the business date that a partition key stands for; None when it has none.

    It is the day on which the window begins, in the window's zone. What the key says of the day
    holds even if the window has no such key any more: something was made for that day.
    """
    if isinstance(partitions, MultiPartitionsDefinition):
        keys = partitions.get_partition_key_from_str(key).keys_by_dimension
        dates = (
            business_date_of(dimension.partitions_def, keys[dimension.name])
            for dimension in partitions.partitions_defs
        )
        return next((one for one in dates if one is not None), None)
    if isinstance(partitions, TimeWindowPartitionsDefinition):
        return _date_of(partitions, key)
    return None


def _date_of(window: TimeWindowPartitionsDefinition, key: str) -> date | None:
    # When the clocks go back, Dagster adds the offset to the second of two hours of one name.
    for fmt in (window.fmt, f"{window.fmt}%z"):
        with suppress(ValueError):
            found = business_date_of_key(key, fmt)
            has_day = any(letter in window.fmt for letter in ("%d", "%j", "%x", "%c"))
            return found if has_day else window.start_time_for_partition_key(key).date()
    return None


def latest_key(
    partitions: TimeWindowPartitionsDefinition, at: datetime | None = None
) -> str | None:
    """Return the key of the newest window that has begun; None before the first has.

    Dagster's last key is another one on a day without business: with `end_offset: 1` the next
    business day has its key already then.
    """
    at = now() if at is None else at
    with partition_loading_context(effective_dt=at):
        window = partitions.get_last_partition_window()
        while window is not None and window.start > at:
            window = partitions.get_prev_partition_window(window.start)
        if window is None:
            return None
        return partitions.get_partition_key_for_timestamp(window.start.timestamp())
