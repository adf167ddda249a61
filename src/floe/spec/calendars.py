"""Business calendars: which days are business days, and the previous and next one.

A calendar is WEEKDAYS, EVERY_DAY, TARGET, the code of an exchange (NYSE, XLON), a country
(DE) or subdivision (DE-BY), or a calendar that the project builds from these.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Literal

from floe.errors import FloeError
from floe.spec.base import SpecModel
from floe.spec.nearby import suggest
from floe.spec.values import Date, OneOrMany

WEEKDAYS, EVERY_DAY, TARGET = "WEEKDAYS", "EVERY_DAY", "TARGET"
Weekday = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
_DAYS: tuple[Weekday, ...] = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_ONE_DAY = timedelta(days=1)
_SEARCH_LIMIT = 366
"""Stop searching after this many consecutive non-business days."""


class CalendarSpec(SpecModel):
    """A custom calendar, built from other calendars."""

    description: str = ""
    """What the calendar is for."""
    base: OneOrMany = (WEEKDAYS,)
    """The calendar it is based on; a list combines the holidays of several."""
    weekend: tuple[Weekday, ...] | None = None
    """Weekend days, if they differ from those of the base."""
    add: tuple[Date, ...] = ()
    """Additional non-business days."""
    remove: tuple[Date, ...] = ()
    """Holidays of the base that are business days."""


class UnknownCalendarError(FloeError):
    """The named calendar is neither built in nor declared."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"No calendar named '{name}'. {suggest(name, known)}".rstrip())


class NoBusinessDayError(FloeError):
    """A calendar has no business day within a year of a date."""

    def __init__(self, name: str, day: date) -> None:
        super().__init__(
            f"The calendar '{name}' has no business day within a year of {day}. "
            "Check its weekend and the days it adds."
        )


@dataclass(frozen=True)
class Calendar:
    """A resolved calendar. `codes` name the public calendars whose holidays it uses."""

    name: str
    weekend: frozenset[int] = frozenset({5, 6})
    codes: tuple[str, ...] = ()
    add: frozenset[date] = frozenset()
    remove: frozenset[date] = frozenset()

    def is_business_day(self, day: date) -> bool:
        """Return whether a day is a business day."""
        if day in self.add:
            return False
        if day in self.remove:
            return True
        if day.weekday() in self.weekend:
            return False
        return not any(day in _holidays(code, day.year) for code in self.codes)

    def holidays(self, year: int) -> frozenset[date]:
        """Return the holidays of a year that do not fall on a weekend."""
        days = {day for code in self.codes for day in _holidays(code, year)}
        days |= {day for day in self.add if day.year == year}
        return frozenset(day for day in days - self.remove if day.weekday() not in self.weekend)

    def previous_business_day(self, day: date) -> date:
        """Return the last business day before a day."""
        return self._step(day, -_ONE_DAY)

    def next_business_day(self, day: date) -> date:
        """Return the first business day after a day."""
        return self._step(day, _ONE_DAY)

    def _step(self, day: date, step: timedelta) -> date:
        candidate = day
        for _ in range(_SEARCH_LIMIT):
            if candidate in (date.min, date.max):
                break
            candidate += step
            if self.is_business_day(candidate):
                return candidate
        raise NoBusinessDayError(self.name, day)


def get_calendar(name: str, declared: Mapping[str, CalendarSpec] | None = None) -> Calendar:
    """Return a calendar by name; declared calendars take precedence."""
    declared = declared or {}
    if name in declared:
        return _build(name, declared[name], declared)
    if not is_built_in(name):
        raise UnknownCalendarError(name, [*declared, *built_in_names()])
    weekend = frozenset[int]() if name == EVERY_DAY else _usual_weekend(name)
    codes = () if name in (WEEKDAYS, EVERY_DAY) else (name,)
    return Calendar(name, weekend, codes)


def _build(name: str, spec: CalendarSpec, declared: Mapping[str, CalendarSpec]) -> Calendar:
    others = {other: other_spec for other, other_spec in declared.items() if other != name}
    bases = [get_calendar(base, others) for base in spec.base]
    weekend = frozenset.union(*(base.weekend for base in bases))
    if spec.weekend is not None:
        weekend = frozenset(_DAYS.index(day) for day in spec.weekend)
    return Calendar(
        name,
        weekend,
        tuple(dict.fromkeys(code for base in bases for code in base.codes)),
        frozenset(spec.add).union(*(base.add for base in bases)) - frozenset(spec.remove),
        frozenset(spec.remove).union(*(base.remove for base in bases)) - frozenset(spec.add),
    )


def is_built_in(name: str) -> bool:
    """Return whether a calendar of that name is built in."""
    if name in (WEEKDAYS, EVERY_DAY, TARGET):
        return True
    country, _, part = name.partition("-")
    if not part:
        return country in _public_codes()
    return country in _countries() and _has_part(country, part)


def built_in_names() -> list[str]:
    """Return the names of the built-in calendars, without subdivisions of countries."""
    return sorted({WEEKDAYS, EVERY_DAY, TARGET} | _public_codes())


@cache
def _holidays(code: str, year: int) -> frozenset[date]:
    """Return the holidays of a year. Imports the slow holidays library on first use."""
    import holidays

    if code in _countries() or "-" in code:
        country, _, part = code.partition("-")
        days = holidays.country_holidays(country, subdiv=part or None, years=year)
    else:
        days = holidays.financial_holidays("ECB" if code == TARGET else code, years=year)
    return frozenset(days)


@cache
def _usual_weekend(name: str) -> frozenset[int]:
    import holidays

    if name in (WEEKDAYS, TARGET) or name not in _countries():
        return frozenset({5, 6})
    return frozenset(holidays.country_holidays(name.partition("-")[0]).weekend)


@cache
def _countries() -> frozenset[str]:
    from holidays.registry import COUNTRIES

    return frozenset(code for entry in COUNTRIES.values() for code in entry[1:] if len(code) == 2)


@cache
def _public_codes() -> frozenset[str]:
    from holidays.registry import FINANCIAL

    return _countries() | {code for entry in FINANCIAL.values() for code in entry[1:]}


@cache
def _has_part(country: str, part: str) -> bool:
    import holidays

    return part in holidays.country_holidays(country).subdivisions
