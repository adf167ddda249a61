"""Partitions of floe.yaml are Dagster's, right on holidays and when the clocks change."""

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

from floe.orchestration.partitions import business_date_of, latest_key
from floe.orchestration.parts import AnyPartitions
from floe.spec import SpecError
from tests.orchestration.projects import load_parts, make_project

LONDON = ZoneInfo("Europe/London")


def build(folder: Path, body: str, more: str = "") -> AnyPartitions:
    floe_yaml = f"name: test\n{more}\norchestration:\n  partitions:\n    p: {{{body}}}\n"
    return load_parts(make_project(folder, floe_yaml)).partitions["p"]


def window(folder: Path, body: str, more: str = "") -> TimeWindowPartitionsDefinition:
    made = build(folder, f"type: time_window, {body}", more)
    assert isinstance(made, TimeWindowPartitionsDefinition)
    return made


def keys(made: AnyPartitions, at: datetime) -> list[str]:
    return list(made.get_partition_keys(current_time=at))


def test_todays_key_exists_today(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-09-01")
    at = datetime(2026, 9, 3, 0, 1, tzinfo=UTC)
    assert keys(made, at) == ["2026-09-01", "2026-09-02", "2026-09-03"]
    assert latest_key(made, at) == "2026-09-03"


def test_end_offset_zero_leaves_the_running_window_out(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-09-01, end_offset: 0")
    assert keys(made, datetime(2026, 9, 3, 12, tzinfo=UTC)) == ["2026-09-01", "2026-09-02"]


def test_windows_end_before_the_end(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-09-01, end: 2026-09-03")
    assert keys(made, datetime(2027, 1, 1, tzinfo=UTC)) == ["2026-09-01", "2026-09-02"]


def test_the_zone_is_the_projects_unless_partitions_say_another(tmp_path: Path) -> None:
    ours = window(tmp_path / "a", "start: 2026-09-01", "timezone: Asia/Tokyo")
    own = "start: 2026-09-01, timezone: America/New_York"
    theirs = window(tmp_path / "b", own, "timezone: Asia/Tokyo")
    assert (ours.timezone, theirs.timezone) == ("Asia/Tokyo", "America/New_York")
    late = datetime(2026, 9, 1, 22, tzinfo=UTC)
    assert keys(ours, late) == ["2026-09-01", "2026-09-02"]
    assert keys(theirs, late) == ["2026-09-01"]


def test_a_start_may_be_a_plain_date_when_keys_have_hours(tmp_path: Path) -> None:
    body = "start: 2026-09-01, cron_schedule: '@hourly', fmt: '%Y-%m-%d-%H:%M', end_offset: 0"
    made = window(tmp_path, body)
    at = datetime(2026, 9, 1, 2, 30, tzinfo=UTC)
    assert keys(made, at) == ["2026-09-01-00:00", "2026-09-01-01:00"]


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


def test_keys_of_days_go_on_without_gap_over_both_switches(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-01-01, timezone: Europe/London")
    found = keys(made, datetime(2026, 12, 31, 12, tzinfo=UTC))
    assert found == [(date(2026, 1, 1) + timedelta(days=n)).isoformat() for n in range(365)]


def test_days_without_business_have_no_key(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-12-22, calendar: TARGET, timezone: Europe/London")
    at = datetime(2026, 12, 29, 12, tzinfo=UTC)
    # Friday the 25th is a holiday, and so is the 26th, a Saturday.
    assert keys(made, at) == ["2026-12-22", "2026-12-23", "2026-12-24", "2026-12-28", "2026-12-29"]
    assert not made.has_partition_key("2026-12-25")


def test_holidays_of_years_to_come_are_known(tmp_path: Path) -> None:
    made = window(tmp_path, "start: 2026-01-01, calendar: TARGET")
    found = keys(made, datetime(2035, 1, 2, tzinfo=UTC))
    assert "2034-12-29" in found
    assert "2034-12-25" not in found
    assert "2035-01-01" not in found


def test_a_calendar_is_the_same_definition_tomorrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = window(tmp_path, "start: 2026-01-01, calendar: TARGET")
    later = datetime(2029, 12, 31, 23, tzinfo=UTC)
    monkeypatch.setattr("floe.orchestration.partitions.now", lambda: later)
    assert window(tmp_path, "start: 2026-01-01, calendar: TARGET") == before


def test_a_weekend_with_business_has_its_key(tmp_path: Path) -> None:
    calendars = "calendars: {ours: {base: [WEEKDAYS], add: [2026-09-02], remove: [2026-09-05]}}"
    made = window(tmp_path, "start: 2026-09-01, calendar: ours", calendars)
    at = datetime(2026, 9, 14, 12, tzinfo=UTC)
    days = [1, 3, 4, 5, 7, 8, 9, 10, 11, 14]
    assert keys(made, at) == [f"2026-09-{day:02}" for day in days]


def test_hours_of_a_day_without_business_have_no_key(tmp_path: Path) -> None:
    made = window(
        tmp_path,
        "start: 2026-12-24, calendar: TARGET, cron_schedule: '0 */6 * * *', "
        "fmt: '%Y-%m-%d-%H:%M', end: 2026-12-29",
    )
    found = keys(made, datetime(2027, 1, 1, tzinfo=UTC))
    assert {key[:10] for key in found} == {"2026-12-24", "2026-12-28"}
    assert len(found) == 8


def test_on_a_day_without_business_the_latest_key_is_that_of_the_day_before(
    tmp_path: Path,
) -> None:
    made = window(tmp_path, "start: 2026-09-01, calendar: WEEKDAYS")
    saturday = datetime(2026, 9, 5, 12, tzinfo=UTC)
    assert latest_key(made, saturday) == "2026-09-04"
    assert latest_key(made, datetime(2026, 8, 5, tzinfo=UTC)) is None


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
    made = build(tmp_path, "type: static, partition_keys: [EMEA, APAC, AMER]")
    assert isinstance(made, StaticPartitionsDefinition)
    assert made.get_partition_keys() == ["EMEA", "APAC", "AMER"]
    assert business_date_of(made, "EMEA") is None


def test_dimensions_are_named_or_declared_in_place(tmp_path: Path) -> None:
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
    inner = {one.name: one.partitions_def for one in wanted.partitions_defs}
    assert inner["client"] == DynamicPartitionsDefinition(name="wanted/client")


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (
            "{type: multi, partitions: {a: {type: time_window, start: 2026-01-01}, "
            "b: {type: time_window, start: 2026-01-01}}}",
            "floe.yaml:4: orchestration.partitions.p.partitions.b: 'a' and 'b' are both dimensions "
            "of time. Keep one: the business date of a key must be clear.",
        ),
        (
            "{type: multi, partitions: {a: {type: static, partition_keys: ['x|y']}, "
            "b: {type: dynamic}}}",
            "floe.yaml:4: orchestration.partitions.p: Invalid character in partition key for "
            "dimension a.",
        ),
    ],
)
def test_partitions_that_dagster_cannot_have_stop_the_load(
    tmp_path: Path, body: str, finding: str
) -> None:
    project = make_project(tmp_path, f"orchestration:\n  partitions:\n    p: {body}\n")
    with pytest.raises(SpecError) as stopped:
        load_parts(project)
    assert str(stopped.value).startswith(finding)


def test_dynamic_keys_come_from_the_instance(tmp_path: Path) -> None:
    made = build(tmp_path, "type: dynamic")
    with DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("p", ["acme"])
        assert made.get_partition_keys(dynamic_partitions_store=instance) == ["acme"]
