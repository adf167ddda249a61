"""Business calendars: built-in ones, countries, exchanges, and declared ones."""

from datetime import date

import pytest

from floe.spec.calendars import (
    EVERY_DAY,
    WEEKDAYS,
    CalendarSpec,
    NoBusinessDayError,
    UnknownCalendarError,
    get_calendar,
    is_built_in,
)

GOOD_FRIDAY, EASTER_MONDAY = date(2026, 4, 3), date(2026, 4, 6)


def test_target_has_easter_holidays() -> None:
    target = get_calendar("TARGET")
    assert not target.is_business_day(GOOD_FRIDAY)
    assert target.next_business_day(date(2026, 4, 2)) == date(2026, 4, 7)
    assert target.previous_business_day(date(2026, 4, 7)) == date(2026, 4, 2)


def test_weekdays_has_no_holidays_and_every_day_no_weekend() -> None:
    assert get_calendar("WEEKDAYS").is_business_day(GOOD_FRIDAY)
    assert not get_calendar("WEEKDAYS").is_business_day(date(2026, 4, 4))
    assert get_calendar("EVERY_DAY").is_business_day(date(2026, 4, 4))


@pytest.mark.parametrize(
    ("name", "holiday"),
    [
        ("NYSE", date(2026, 11, 26)),
        ("XLON", EASTER_MONDAY),
        ("DE", date(2026, 10, 3)),
        ("DE-BY", date(2026, 1, 6)),
        ("GB-ENG", date(2026, 8, 31)),
    ],
)
def test_exchanges_countries_and_subdivisions_are_built_in(name: str, holiday: date) -> None:
    assert is_built_in(name)
    assert not get_calendar(name).is_business_day(holiday)


def test_weekend_follows_the_country() -> None:
    friday, sunday = date(2026, 2, 6), date(2026, 2, 8)
    saudi = get_calendar("SA")
    assert not saudi.is_business_day(friday)
    assert saudi.is_business_day(sunday)


@pytest.mark.parametrize("name", ["TARGT", "XX", "DE-XX", "XX-YY", ""])
def test_unknown_names_are_not_built_in(name: str) -> None:
    assert not is_built_in(name)


def test_unknown_calendar_suggests_a_similar_name() -> None:
    with pytest.raises(UnknownCalendarError, match="Did you mean 'TARGET'"):
        get_calendar("TARGT")


def test_declared_calendar_combines_adds_and_removes_holidays() -> None:
    declared = {
        "desk": CalendarSpec(
            base=("TARGET", "NYSE"), add=(date(2026, 9, 2),), remove=(GOOD_FRIDAY,)
        )
    }
    desk = get_calendar("desk", declared)
    assert not desk.is_business_day(date(2026, 9, 2))
    assert desk.is_business_day(GOOD_FRIDAY)
    assert not desk.is_business_day(EASTER_MONDAY)
    assert not desk.is_business_day(date(2026, 11, 26))


def test_declared_calendar_has_its_own_weekend() -> None:
    declared = {"gulf": CalendarSpec(base=("WEEKDAYS",), weekend=("fri", "sat"))}
    gulf = get_calendar("gulf", declared)
    assert not gulf.is_business_day(date(2026, 2, 6))
    assert gulf.is_business_day(date(2026, 2, 8))


def test_declared_calendar_can_replace_a_built_in_one() -> None:
    declared = {
        "TARGET": CalendarSpec(base=("TARGET",), add=(date(2026, 9, 2),)),
        "desk": CalendarSpec(base=("TARGET",), add=(date(2026, 9, 3),)),
    }
    desk = get_calendar("desk", declared)
    assert not desk.is_business_day(date(2026, 9, 2))
    assert not desk.is_business_day(date(2026, 9, 3))


def test_calendar_without_business_days_is_an_error() -> None:
    week = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    declared = {"never": CalendarSpec(weekend=week)}
    with pytest.raises(NoBusinessDayError, match="'never' has no business day"):
        get_calendar("never", declared).next_business_day(date(2026, 9, 1))


def test_holidays_of_a_year_do_not_fall_on_weekends() -> None:
    spec = CalendarSpec(base=("TARGET",), add=(date(2026, 9, 2), date(2026, 9, 5)))
    holidays = get_calendar("ours", {"ours": spec}).holidays(2026)
    assert date(2026, 12, 25) in holidays
    assert date(2026, 9, 2) in holidays
    assert not any(day.weekday() >= 5 for day in holidays)


@pytest.mark.parametrize("name", [WEEKDAYS, EVERY_DAY, "TARGET"])
def test_calendar_fails_at_the_first_and_last_date(name: str) -> None:
    with pytest.raises(NoBusinessDayError):
        get_calendar(name).next_business_day(date.max)
    with pytest.raises(NoBusinessDayError):
        get_calendar(name).previous_business_day(date.min)
