"""Partitions of floe.yaml in Dagster, on holidays and clock changes too."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from dagster import (
    DagsterInstance,
    DynamicPartitionsDefinition,
    MultiPartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from floe.orchestration.business_dates import business_date_of
from floe.orchestration.loading import AnyPartitions
from floe.orchestration.partitions import latest_key
from floe.spec import SpecError
from tests.orchestration.projects import load_parts, make_project

LONDON = ZoneInfo("Europe/London")


def build(folder: Path, body: str, more: str = "") -> AnyPartitions:
    floe_yaml = f"name: test\n{more}\norchestration:\n  partitions:\n    p: {{{body}}}\n"
    return load_parts(make_project(folder, floe_yaml)).partitions["p"]


def window(folder: Path, body: str, more: str = "") -> TimeWindowPartitionsDefinition:
    result = build(folder, f"type: time_window, {body}", more)
    assert isinstance(result, TimeWindowPartitionsDefinition)
    return result


def keys(result: AnyPartitions, at: datetime) -> list[str]:
    return list(result.get_partition_keys(current_time=at))


def test_todays_key_exists_today(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-09-01")
    at = datetime(2026, 9, 3, 0, 1, tzinfo=UTC)
    assert keys(result, at) == ["2026-09-01", "2026-09-02", "2026-09-03"]
    assert latest_key(result, at) == "2026-09-03"


def test_end_offset_zero_leaves_the_running_window_out(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-09-01, end_offset: 0")
    assert keys(result, datetime(2026, 9, 3, 12, tzinfo=UTC)) == ["2026-09-01", "2026-09-02"]


def test_windows_end_before_the_end(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-09-01, end: 2026-09-03")
    assert keys(result, datetime(2027, 1, 1, tzinfo=UTC)) == ["2026-09-01", "2026-09-02"]


def test_the_time_zone_is_that_of_the_project_unless_partitions_set_one(tmp_path: Path) -> None:
    ours = window(tmp_path / "a", "start: 2026-09-01", "timezone: Asia/Tokyo")
    own = "start: 2026-09-01, timezone: America/New_York"
    theirs = window(tmp_path / "b", own, "timezone: Asia/Tokyo")
    assert (ours.timezone, theirs.timezone) == ("Asia/Tokyo", "America/New_York")
    late = datetime(2026, 9, 1, 22, tzinfo=UTC)
    assert keys(ours, late) == ["2026-09-01", "2026-09-02"]
    assert keys(theirs, late) == ["2026-09-01"]


def test_a_start_may_be_a_plain_date_when_keys_have_hours(tmp_path: Path) -> None:
    body = "start: 2026-09-01, cron_schedule: '@hourly', fmt: '%Y-%m-%d-%H:%M', end_offset: 0"
    result = window(tmp_path, body)
    at = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)
    assert keys(result, at) == ["2026-09-01-00:00", "2026-09-01-01:00"]


@pytest.mark.parametrize(
    ("day", "length"), [(date(2026, 3, 29), 23), (date(2026, 10, 25), 25), (date(2026, 6, 1), 24)]
)
def test_a_day_has_the_hours_that_its_zone_gives_it(tmp_path: Path, day: date, length: int) -> None:
    daily = window(tmp_path / "daily", "start: 2026-01-01, timezone: Europe/London")
    hourly = window(
        tmp_path / "hourly",
        "start: 2026-01-01, timezone: Europe/London, cron_schedule: '0 * * * *', "
        "fmt: '%Y-%m-%d-%H:%M'",
    )
    day_window = daily.time_window_for_partition_key(day.isoformat())
    lasts = day_window.end.astimezone(UTC) - day_window.start.astimezone(UTC)
    assert lasts == timedelta(hours=length)
    assert day_window.start == datetime(day.year, day.month, day.day, tzinfo=LONDON)
    hours = hourly.get_partition_keys_in_time_window(day_window)
    assert len(hours) == len(set(hours)) == length
    assert {business_date_of(hourly, hour) for hour in hours} == {day}


def test_daily_keys_have_no_gap_on_clock_change_days(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-01-01, timezone: Europe/London")
    all_keys = keys(result, datetime(2026, 12, 31, 12, tzinfo=UTC))
    assert all_keys == [(date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(365)]


def test_non_business_days_have_no_key(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-12-22, calendar: TARGET, timezone: Europe/London")
    at = datetime(2026, 12, 29, 12, tzinfo=UTC)
    # Friday the 25th is a holiday, and so is the 26th, a Saturday.
    assert keys(result, at) == [
        "2026-12-22",
        "2026-12-23",
        "2026-12-24",
        "2026-12-28",
        "2026-12-29",
    ]
    assert not result.has_partition_key("2026-12-25")


def test_holidays_of_future_years_are_excluded(tmp_path: Path) -> None:
    result = window(tmp_path, "start: 2026-01-01, calendar: TARGET")
    all_keys = keys(result, datetime(2035, 1, 2, tzinfo=UTC))
    assert "2034-12-29" in all_keys
    assert "2034-12-25" not in all_keys
    assert "2035-01-01" not in all_keys


def test_a_calendar_is_the_same_definition_tomorrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = window(tmp_path, "start: 2026-01-01, calendar: TARGET")
    later = datetime(2029, 12, 31, 23, tzinfo=UTC)
    monkeypatch.setattr("floe.orchestration.partitions.now", lambda: later)
    assert window(tmp_path, "start: 2026-01-01, calendar: TARGET") == before


def test_a_weekend_business_day_has_a_key(tmp_path: Path) -> None:
    calendars = "calendars: {ours: {base: [WEEKDAYS], add: [2026-09-02], remove: [2026-09-05]}}"
    result = window(tmp_path, "start: 2026-09-01, calendar: ours", calendars)
    at = datetime(2026, 9, 14, 12, tzinfo=UTC)
    days = [1, 3, 4, 5, 7, 8, 9, 10, 11, 14]
    assert keys(result, at) == [f"2026-09-{day:02}" for day in days]


def test_hours_of_a_non_business_day_have_no_key(tmp_path: Path) -> None:
    result = window(
        tmp_path,
        "start: 2026-12-24, calendar: TARGET, cron_schedule: '0 */6 * * *', "
        "fmt: '%Y-%m-%d-%H:%M', end: 2026-12-29",
    )
    all_keys = keys(result, datetime(2027, 1, 1, tzinfo=UTC))
    assert {key[:10] for key in all_keys} == {"2026-12-24", "2026-12-28"}
    assert len(all_keys) == 8


def test_on_a_non_business_day_the_latest_key_is_that_of_the_previous_day(
    tmp_path: Path,
) -> None:
    result = window(tmp_path, "start: 2026-09-01, calendar: WEEKDAYS")
    saturday = datetime(2026, 9, 5, 12, tzinfo=UTC)
    assert latest_key(result, saturday) == "2026-09-04"
    assert latest_key(result, datetime(2026, 8, 5, tzinfo=UTC)) is None


@pytest.mark.parametrize(
    ("body", "key", "day"),
    [
        ("calendar: TARGET", "2026-12-25", date(2026, 12, 25)),
        ("cron_schedule: '0 7 * * *'", "2026-09-02", date(2026, 9, 2)),
        ("cron_schedule: '0 0 15 * *', fmt: '%Y-%m'", "2026-09", date(2026, 9, 15)),
        ("timezone: Asia/Tokyo", "2026-09-02", date(2026, 9, 2)),
        ("", "EMEA", None),
    ],
    ids=["a holiday", "from the morning", "without a day", "in a zone", "no key of time"],
)
def test_the_business_date_is_the_day_on_which_a_window_begins(
    tmp_path: Path, body: str, key: str, day: date | None
) -> None:
    assert business_date_of(window(tmp_path, f"start: 2026-01-01, {body}"), key) == day


def test_static_keys_keep_their_order(tmp_path: Path) -> None:
    result = build(tmp_path, "type: static, partition_keys: [EMEA, APAC, AMER]")
    assert isinstance(result, StaticPartitionsDefinition)
    assert result.get_partition_keys() == ["EMEA", "APAC", "AMER"]
    assert business_date_of(result, "EMEA") is None


def test_dimensions_are_references_or_inline_definitions(tmp_path: Path) -> None:
    project = make_project(
        tmp_path,
        """
        orchestration:
          partitions:
            both:
              type: multi
              partitions:
                day: daily
                region: {type: static, partition_keys: [EMEA, APAC]}
            daily: {type: time_window, start: 2026-09-01, end: 2026-09-03}
            wanted:
              type: multi
              partitions: {day: daily, client: {type: dynamic}}
        """,
    )
    partitions = load_parts(project).partitions
    both, wanted = partitions["both"], partitions["wanted"]
    assert sorted(both.get_partition_keys()) == [
        "2026-09-01|APAC",
        "2026-09-01|EMEA",
        "2026-09-02|APAC",
        "2026-09-02|EMEA",
    ]
    assert business_date_of(both, "2026-09-02|APAC") == date(2026, 9, 2)
    assert isinstance(wanted, MultiPartitionsDefinition)
    inner = {item.name: item.partitions_def for item in wanted.partitions_defs}
    assert inner["client"] == DynamicPartitionsDefinition(name="wanted/client")


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (
            "{type: multi, partitions: {a: {type: time_window, start: 2026-01-01}, "
            "b: {type: time_window, start: 2026-01-01}}}",
            "floe.yaml:4: orchestration.partitions.p.partitions.b: 'a' and 'b' are both time "
            "dimensions. Keep one: a key has one business date.",
        ),
        (
            "{type: multi, partitions: {a: {type: static, partition_keys: ['x|y']}, "
            "b: {type: dynamic}}}",
            "floe.yaml:4: orchestration.partitions.p: Invalid character in partition key for "
            "dimension a.",
        ),
    ],
)
def test_partitions_that_dagster_rejects_stop_the_load(
    tmp_path: Path, body: str, finding: str
) -> None:
    project = make_project(tmp_path, f"orchestration:\n  partitions:\n    p: {body}\n")
    with pytest.raises(SpecError) as stopped:
        load_parts(project)
    assert str(stopped.value).startswith(finding)


def test_dynamic_keys_come_from_the_instance(tmp_path: Path) -> None:
    result = build(tmp_path, "type: dynamic")
    with DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("p", ["acme"])
        assert result.get_partition_keys(dynamic_partitions_store=instance) == ["acme"]
