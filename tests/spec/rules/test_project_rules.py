"""Rules for calendars and governance policies."""

from collections.abc import Callable

Find = Callable[..., list[str]]


def test_unknown_base_and_default_calendar_are_findings(find: Find) -> None:
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


def test_calendar_cycle_is_a_finding(find: Find) -> None:
    assert find("name: x\ncalendars:\n  a: {base: b}\n  b: {base: a}\n") == [
        "floe.yaml:3: calendars.a.base: the calendar is its own base: a → b → a. "
        "Base one of them on another calendar."
    ]


def test_calendar_based_on_itself_is_a_finding(find: Find) -> None:
    (finding,) = find("name: x\ncalendars: {a: {base: a}}\n")
    assert "the calendar is its own base: a → a" in finding


def test_calendar_can_extend_the_built_in_one_it_replaces(find: Find) -> None:
    assert not find("name: x\ncalendars: {TARGET: {base: TARGET, add: [2026-09-02]}}\n")


def test_day_cannot_be_added_and_removed(find: Find) -> None:
    (finding,) = find(
        "name: x\ncalendars: {a: {base: TARGET, add: [2026-09-02], remove: [2026-09-02]}}\n"
    )
    assert "2026-09-02 is both added and removed" in finding


def test_policy_with_an_unknown_classification_is_a_finding(find: Find) -> None:
    assert find(
        """
        name: x
        governance:
          classifications: [public, personal]
          policies:
            people: {action: mask, classifications: [personnal]}
        """
    ) == [
        "floe.yaml:6: governance.policies.people.classifications[0]: no classification named "
        "'personnal'. Did you mean 'personal'?"
    ]


def test_policy_without_classifications_is_a_finding(find: Find) -> None:
    (finding,) = find("name: x\ngovernance:\n  policies:\n    people: {action: mask}\n")
    assert "governance.policies.people.classifications: is missing" in finding
    assert "public, internal" in finding
