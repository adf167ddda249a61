"""Dagster's definitions of `orchestration.partitions`, and their newest keys."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from dagster import (
    DagsterInstance,
    DagsterInvalidDefinitionError,
    DynamicPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
    partition_loading_context,
)

from floe.clock import now
from floe.orchestration.loading import AnyPartitions, Loading, Parts
from floe.spec.calendars import Calendar
from floe.spec.partitions import (
    DynamicPartitions,
    MultiPartitions,
    Partitions,
    StaticPartitions,
    TimeWindow,
    parse_bound,
    ticks,
)

_FIELDS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
"""Cron macros: Dagster recognizes the kind of window only from the five fields."""


def build_partitions(loading: Loading, parts: Parts) -> Parts:
    """Build Dagster's partition definitions from floe.yaml."""
    declared = loading.site.spec.orchestration.partitions
    built: dict[str, AnyPartitions] = {}
    # Multi-dimensional definitions come last, because they refer to others.
    for name in sorted(declared, key=lambda key: isinstance(declared[key], MultiPartitions)):
        path = ("orchestration", "partitions", name)
        try:
            built[name] = _build(loading, name, declared[name], built)
        except DagsterInvalidDefinitionError as error:
            raise loading.refusal(path, str(error).rstrip(".")) from error
    return replace(parts, partitions=built)


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
        # Names in floe.yaml have no slash, so an inline dimension cannot clash with one.
        dimension: others[inner]
        if isinstance(inner, str)
        else _build(loading, f"{name}/{dimension}", inner, others)
        for dimension, inner in partitions.partitions.items()
    }
    windows = [dimension for dimension, inner in dimensions.items() if _is_window(inner)]
    if len(windows) > 1:
        path = ("orchestration", "partitions", name, "partitions", windows[1])
        message = f"'{windows[0]}' and '{windows[1]}' are both time dimensions"
        hint = "Keep one: a key has one business date."
        raise loading.refusal(path, message, hint)
    return MultiPartitionsDefinition(dimensions)


def _is_window(partitions: AnyPartitions) -> bool:
    return isinstance(partitions, TimeWindowPartitionsDefinition)


def _build_window(loading: Loading, window: TimeWindow) -> TimeWindowPartitionsDefinition:
    spec = loading.site.spec
    cron = _FIELDS.get(window.cron_schedule, window.cron_schedule)
    start = parse_bound(window, window.start)
    end = parse_bound(window, window.end) if window.end is not None else None
    assert start is not None, "floe.yaml was validated"
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
    """Return until when non-business days are excluded: the end of the next decade.

    They are part of the definition, and Dagster discards its state when a definition changes. So
    the horizon must not move daily, and must suffice for a process that runs for years.
    """
    year = max(start.year, now().year)
    return datetime(year // 10 * 10 + 20, 1, 1)  # noqa: DTZ001 - wall time of the window's zone


def _exclusions(
    calendar: Calendar, cron: str, start: datetime, end: datetime
) -> Iterator[str | datetime]:
    """Yield the excluded windows: weekends as one cron expression, holidays one by one.

    Dagster scans this list on every lookup, so it is kept short.
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
    """Return the non-business days of a year on the given weekdays."""
    if not weekdays:
        return set()
    days = (date(year, 1, 1) + timedelta(days=offset) for offset in range(366))
    return {day for day in days if day.weekday() in weekdays and not calendar.is_business_day(day)}


def _windows_of(cron: str, day: date) -> Iterator[datetime]:
    window = TimeWindow(type="time_window", start=day.isoformat(), cron_schedule=cron)
    for tick in ticks(window, datetime.combine(day, time())):
        if tick.date() != day:
            return
        yield tick


def latest_key(
    partitions: TimeWindowPartitionsDefinition, at: datetime | None = None
) -> str | None:
    """Return the key of the newest window that has started, or None.

    Dagster's last key differs on a non-business day: with `end_offset: 1` the key of the next
    business day exists already.
    """
    at = now() if at is None else at
    with partition_loading_context(effective_dt=at):
        window = partitions.get_last_partition_window()
        while window is not None and window.start > at:
            window = partitions.get_prev_partition_window(window.start)
        if window is None:
            return None
        return partitions.get_partition_key_for_timestamp(window.start.timestamp())


def newest_keys(
    partitions: AnyPartitions, at: datetime | None = None, store: DagsterInstance | None = None
) -> Sequence[str]:
    """Return the newest keys: one, or with a second dimension one per key of that dimension.

    Of dynamic keys the newest is the one that was added last. Static keys are all equally new.
    """
    with partition_loading_context(at, store):
        return _newest(partitions, at)


def _newest(partitions: AnyPartitions, at: datetime | None) -> Sequence[str]:
    match partitions:
        case TimeWindowPartitionsDefinition():
            newest = latest_key(partitions, at)
        case DynamicPartitionsDefinition():
            newest = partitions.get_last_partition_key()
        case MultiPartitionsDefinition():
            return _newest_of_time(partitions, at)
        case _:
            return partitions.get_partition_keys()
    return [] if newest is None else [newest]


def _newest_of_time(partitions: MultiPartitionsDefinition, at: datetime | None) -> Sequence[str]:
    keys: list[dict[str, str]] = [{}]
    for dimension in partitions.partitions_defs:
        inner: Any = dimension.partitions_def
        is_time = isinstance(inner, TimeWindowPartitionsDefinition)
        own = _newest(inner, at) if is_time else inner.get_partition_keys()
        keys = [{**key, dimension.name: inner_key} for key in keys for inner_key in own]
    return [MultiPartitionKey(key) for key in keys]
