"""Every calendar that is named is known, and none is built from itself."""

from collections.abc import Callable

Find = Callable[..., list[str]]


def test_unknown_base_and_unknown_default_are_found(find: Find) -> None:
    findings = find(
        """
        name: x
        calendar: dsek
        calendars:
          desk: {base: [TARGET, NYES]}
        """
    )
    assert findings == [
        "floe.yaml:3: calendar: no calendar named 'dsek'. Did you mean 'desk'?",
        "floe.yaml:5: calendars.desk.base[1]: no calendar named 'NYES'. Did you mean 'NYSE'?",
    ]


def test_calendar_that_is_its_own_base_is_found(find: Find) -> None:
    assert find("name: x\ncalendars:\n  a: {base: b}\n  b: {base: a}\n") == [
        "floe.yaml:3: calendars.a.base: the calendar is its own base: a → b → a. "
        "Base one of them on another."
    ]


def test_calendar_that_bases_on_itself_is_found(find: Find) -> None:
    (finding,) = find("name: x\ncalendars: {a: {base: a}}\n")
    assert "the calendar is its own base: a → a" in finding


def test_calendar_may_change_a_built_in_one(find: Find) -> None:
    assert not find("name: x\ncalendars: {TARGET: {base: TARGET, add: [2026-09-02]}}\n")


def test_day_cannot_be_added_and_removed(find: Find) -> None:
    (finding,) = find(
        "name: x\ncalendars: {a: {base: TARGET, add: [2026-09-02], remove: [2026-09-02]}}\n"
    )
    assert "2026-09-02 is both added and removed" in finding
