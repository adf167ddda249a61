"""Which processes start when datasets get ready."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from floe.spec import ProjectSpec
from floe.spec.processes import Input
from floe.triggers import Done, Ready, Subscriptions, Waits, decide, decide_all
from floe.triggers.deciding import Reads

TUESDAY, WEDNESDAY = date(2026, 9, 1), date(2026, 9, 2)
FRIDAY, SATURDAY, MONDAY = date(2026, 9, 4), date(2026, 9, 5), date(2026, 9, 7)


def project(**inputs: Any) -> ProjectSpec:
    """A project with one process that reads these."""
    names = {one if isinstance(one, str) else one["dataset"] for one in inputs.values()}
    return ProjectSpec.model_validate(
        {
            "name": "test",
            "datasets": {name: {} for name in (*sorted(names), "out.made")},
            "processes": {
                "make": {
                    "trigger": "dataset",
                    "inputs": inputs,
                    "outputs": {"made": "out.made"},
                    "sql": "select 1",
                }
            },
        }
    )


class Told:
    """What is READY and what was read, as a test tells it."""

    def __init__(self, ready: Mapping[str, Sequence[str]], consumed: Iterable[Reads] = ()) -> None:
        self._ready, self._consumed = ready, consumed

    def versions(self, one: Input, business_date: date) -> Sequence[str]:
        return self._ready.get(one.dataset, ())

    def consumed(self, process: str, business_date: date) -> Iterable[Reads]:
        return self._consumed


BOTH = {"a": "in.a", "b": "in.b"}


def test_a_process_starts_when_all_its_inputs_are_ready() -> None:
    spec = project(**BOTH)
    found = decide(
        "make",
        spec.processes["make"],
        TUESDAY,
        Told({"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.2"]}),
    )
    assert isinstance(found, Ready)
    assert found.reads == {"a": ("2026-09-01.1",), "b": ("2026-09-01.2",)}


def test_a_process_waits_for_what_is_missing_and_names_it() -> None:
    spec = project(**BOTH)
    found = decide("make", spec.processes["make"], TUESDAY, Told({"in.a": ["2026-09-01.1"]}))
    assert isinstance(found, Waits)
    assert [(lack.alias, lack.input.dataset) for lack in found.lacks] == [("b", "in.b")]


def test_an_optional_input_is_not_waited_for() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "optional": True})
    found = decide("make", spec.processes["make"], TUESDAY, Told({"in.a": ["2026-09-01.1"]}))
    assert isinstance(found, Ready)


def test_the_same_versions_start_a_process_once() -> None:
    spec = project(a="in.a")
    read = {"a": ("2026-09-01.1",)}
    found = decide("make", spec.processes["make"], TUESDAY, Told({"in.a": read["a"]}, [read]))
    assert isinstance(found, Done)


def test_a_newer_version_of_a_date_starts_it_again() -> None:
    spec = project(a="in.a")
    told = Told({"in.a": ["2026-09-01.2"]}, [{"a": ["2026-09-01.1"]}])
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, told), Ready)


def test_what_does_not_trigger_does_not_start_a_process_again() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "triggers": False})
    told = Told(
        {"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.2"]},
        [{"a": ["2026-09-01.1"], "b": ["2026-09-01.1"]}],
    )
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, told), Done)


def test_the_key_of_a_run_follows_from_what_it_reads() -> None:
    one = Ready("make", TUESDAY, {"a": ("1",), "b": ("2",)})
    same = Ready("make", TUESDAY, {"b": ("2",), "a": ("1",)})
    others = [
        Ready("make", TUESDAY, {"a": ("2",), "b": ("2",)}),
        Ready("make", WEDNESDAY, {"a": ("1",), "b": ("2",)}),
        Ready("make", TUESDAY, {"a": ("1", "2"), "b": ()}),
    ]
    assert one.run_key == same.run_key
    assert one.run_key not in {other.run_key for other in others}


@pytest.mark.parametrize(
    ("mapping", "version", "reading"),
    [
        ("same_date", TUESDAY, TUESDAY),
        ("previous_day", TUESDAY, WEDNESDAY),
        ("previous_business_day", FRIDAY, MONDAY),
        ("previous_business_day", SATURDAY, None),
        ("latest", FRIDAY, FRIDAY),
        ("last", FRIDAY, FRIDAY),
    ],
)
def test_a_version_concerns_the_date_that_reads_it(
    mapping: str, version: date, reading: date | None
) -> None:
    one = {"dataset": "in.a", "mapping": mapping} | ({"count": 3} if mapping == "last" else {})
    found = [one.business_date for one in Subscriptions(project(a=one)).concerned("in.a", version)]
    assert found == ([] if reading is None else [reading])


def test_nobody_is_concerned_whom_a_schedule_starts() -> None:
    spec = project(a="in.a")
    plain = spec.processes["make"].model_copy(update={"trigger": "process"})
    other = spec.model_copy(update={"processes": {"make": plain}})
    assert list(Subscriptions(other).concerned("in.a", TUESDAY)) == []


def test_one_concern_is_decided_on_once() -> None:
    spec = project(a="in.a", b="in.b")
    told = Told({"in.a": ["1"], "in.b": ["1"]})
    subscriptions = Subscriptions(spec)
    concerns = [
        *subscriptions.concerned("in.a", TUESDAY),
        *subscriptions.concerned("in.b", TUESDAY),
    ]
    assert len(concerns) == 2
    assert len(decide_all(concerns, spec.processes, told)) == 1


class Known:
    """For which later dates something is READY or has run, as a test tells it."""

    def __init__(self, ready: Mapping[str, set[date]], ran: Iterable[date] = ()) -> None:
        self._ready, self._ran = ready, set(ran)

    def dates_ready(self, datasets: Iterable[str], after: date) -> Mapping[str, set[date]]:
        return {
            name: {day for day in self._ready.get(name, set()) if day > after} for name in datasets
        }

    def dates_run(self, processes: Iterable[str], after: date) -> Mapping[str, set[date]]:
        return dict.fromkeys(processes, self._ran)


def test_dates_that_waited_for_any_version_up_to_them_are_concerned_by_the_first() -> None:
    spec = project(a="in.a", ref={"dataset": "in.ref", "mapping": "latest"})
    subscriptions = Subscriptions(spec)
    known = Known({"in.a": {WEDNESDAY, FRIDAY}})
    found = subscriptions.overdue("in.ref", TUESDAY, known)
    assert [one.business_date for one in found] == [WEDNESDAY, FRIDAY]


def test_a_date_that_has_run_is_not_repeated_for_an_older_version() -> None:
    spec = project(a="in.a", ref={"dataset": "in.ref", "mapping": "latest"})
    known = Known({"in.a": {TUESDAY, WEDNESDAY, FRIDAY}}, ran=[WEDNESDAY])
    found = Subscriptions(spec).overdue("in.ref", TUESDAY, known)
    assert [one.business_date for one in found] == [FRIDAY]


def test_who_reads_the_day_before_waits_for_the_date_after_it() -> None:
    spec = project(
        a={"dataset": "in.a", "mapping": "previous_day"},
        ref={"dataset": "in.ref", "mapping": "latest"},
    )
    found = Subscriptions(spec).overdue("in.ref", TUESDAY, Known({"in.a": {TUESDAY}}))
    assert [one.business_date for one in found] == [WEDNESDAY]


def test_what_is_no_reason_to_repeat_a_process_may_be_what_it_waits_for() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "triggers": False})
    found = list(Subscriptions(spec).concerned("in.b", TUESDAY))
    assert [one.business_date for one in found] == [TUESDAY]
    told = Told({"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.1"]})
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, told), Ready)


def test_versions_that_hold_again_start_a_process_again_under_another_key() -> None:
    spec = project(a="in.a")
    first, second = {"a": ("2026-09-01.1",)}, {"a": ("2026-09-01.2",)}
    before = decide("make", spec.processes["make"], TUESDAY, Told({"in.a": first["a"]}))
    # The second version was read, and then taken back.
    after = decide(
        "make", spec.processes["make"], TUESDAY, Told({"in.a": first["a"]}, [second, first])
    )
    assert isinstance(before, Ready)
    assert isinstance(after, Ready)
    assert after.run_key != before.run_key
