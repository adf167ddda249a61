"""Which processes start when versions become READY."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from floe.spec import ProjectSpec
from floe.spec.processes import Input
from floe.triggers import Done, Ready, Subscriptions, Waiting, decide, decide_all
from floe.triggers.decisions import Reads

TUESDAY, WEDNESDAY = date(2026, 9, 1), date(2026, 9, 2)
FRIDAY, SATURDAY, MONDAY = date(2026, 9, 4), date(2026, 9, 5), date(2026, 9, 7)


def project(**inputs: Any) -> ProjectSpec:
    """A project with one process that reads these inputs."""
    names = {name if isinstance(name, str) else name["dataset"] for name in inputs.values()}
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


class FakeHistory:
    """READY versions and earlier reads, set by a test."""

    def __init__(self, ready: Mapping[str, Sequence[str]], consumed: Iterable[Reads] = ()) -> None:
        self._ready, self._consumed = ready, consumed

    def versions(self, process_input: Input, business_date: date) -> Sequence[str]:
        return self._ready.get(process_input.dataset, ())

    def consumed(self, process: str, business_date: date) -> Iterable[Reads]:
        return self._consumed


BOTH = {"a": "in.a", "b": "in.b"}


def test_a_process_starts_when_all_its_inputs_are_ready() -> None:
    spec = project(**BOTH)
    decision = decide(
        "make",
        spec.processes["make"],
        TUESDAY,
        FakeHistory({"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.2"]}),
    )
    assert isinstance(decision, Ready)
    assert decision.reads == {"a": ("2026-09-01.1",), "b": ("2026-09-01.2",)}


def test_a_process_waits_for_missing_inputs_and_names_them() -> None:
    spec = project(**BOTH)
    decision = decide(
        "make", spec.processes["make"], TUESDAY, FakeHistory({"in.a": ["2026-09-01.1"]})
    )
    assert isinstance(decision, Waiting)
    assert [(missing.alias, missing.input.dataset) for missing in decision.missing] == [
        ("b", "in.b")
    ]


def test_an_optional_input_is_not_waited_for() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "optional": True})
    decision = decide(
        "make", spec.processes["make"], TUESDAY, FakeHistory({"in.a": ["2026-09-01.1"]})
    )
    assert isinstance(decision, Ready)


def test_the_same_versions_start_a_process_once() -> None:
    spec = project(a="in.a")
    read = {"a": ("2026-09-01.1",)}
    decision = decide(
        "make", spec.processes["make"], TUESDAY, FakeHistory({"in.a": read["a"]}, [read])
    )
    assert isinstance(decision, Done)


def test_a_newer_version_of_a_date_starts_it_again() -> None:
    spec = project(a="in.a")
    history = FakeHistory({"in.a": ["2026-09-01.2"]}, [{"a": ["2026-09-01.1"]}])
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, history), Ready)


def test_an_input_that_does_not_trigger_starts_no_second_run() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "triggers": False})
    history = FakeHistory(
        {"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.2"]},
        [{"a": ["2026-09-01.1"], "b": ["2026-09-01.1"]}],
    )
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, history), Done)


def test_the_run_key_depends_only_on_the_versions_read() -> None:
    first = Ready("make", TUESDAY, {"a": ("1",), "b": ("2",)})
    same = Ready("make", TUESDAY, {"b": ("2",), "a": ("1",)})
    others = [
        Ready("make", TUESDAY, {"a": ("2",), "b": ("2",)}),
        Ready("make", WEDNESDAY, {"a": ("1",), "b": ("2",)}),
        Ready("make", TUESDAY, {"a": ("1", "2"), "b": ()}),
    ]
    assert first.run_key == same.run_key
    assert first.run_key not in {other.run_key for other in others}


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
def test_a_version_starts_the_date_that_reads_it(
    mapping: str, version: date, reading: date | None
) -> None:
    read = {"dataset": "in.a", "mapping": mapping} | ({"count": 3} if mapping == "last" else {})
    candidates = Subscriptions(project(a=read)).candidates("in.a", version)
    assert [candidate.business_date for candidate in candidates] == (
        [] if reading is None else [reading]
    )


def test_a_process_on_a_schedule_is_no_candidate() -> None:
    spec = project(a="in.a")
    plain = spec.processes["make"].model_copy(update={"trigger": "process"})
    other = spec.model_copy(update={"processes": {"make": plain}})
    assert list(Subscriptions(other).candidates("in.a", TUESDAY)) == []


def test_each_candidate_is_decided_on_once() -> None:
    spec = project(a="in.a", b="in.b")
    history = FakeHistory({"in.a": ["1"], "in.b": ["1"]})
    subscriptions = Subscriptions(spec)
    candidates = [
        *subscriptions.candidates("in.a", TUESDAY),
        *subscriptions.candidates("in.b", TUESDAY),
    ]
    assert len(candidates) == 2
    assert len(decide_all(candidates, spec.processes, history)) == 1


class FakeLaterDates:
    """Later dates that are READY or have run, set by a test."""

    def __init__(self, ready: Mapping[str, set[date]], ran: Iterable[date] = ()) -> None:
        self._ready, self._ran = ready, set(ran)

    def dates_ready(self, datasets: Iterable[str], after: date) -> Mapping[str, set[date]]:
        return {
            name: {day for day in self._ready.get(name, set()) if day > after} for name in datasets
        }

    def dates_run(self, processes: Iterable[str], after: date) -> Mapping[str, set[date]]:
        return dict.fromkeys(processes, self._ran)


def test_the_first_version_of_a_latest_input_starts_the_later_dates_that_waited() -> None:
    spec = project(a="in.a", ref={"dataset": "in.ref", "mapping": "latest"})
    subscriptions = Subscriptions(spec)
    later = FakeLaterDates({"in.a": {WEDNESDAY, FRIDAY}})
    candidates = subscriptions.later_candidates("in.ref", TUESDAY, later)
    assert [candidate.business_date for candidate in candidates] == [WEDNESDAY, FRIDAY]


def test_a_date_that_has_run_is_not_repeated_for_an_older_version() -> None:
    spec = project(a="in.a", ref={"dataset": "in.ref", "mapping": "latest"})
    later = FakeLaterDates({"in.a": {TUESDAY, WEDNESDAY, FRIDAY}}, ran=[WEDNESDAY])
    candidates = Subscriptions(spec).later_candidates("in.ref", TUESDAY, later)
    assert [candidate.business_date for candidate in candidates] == [FRIDAY]


def test_a_process_that_reads_the_previous_day_waits_for_the_next_date() -> None:
    spec = project(
        a={"dataset": "in.a", "mapping": "previous_day"},
        ref={"dataset": "in.ref", "mapping": "latest"},
    )
    candidates = Subscriptions(spec).later_candidates(
        "in.ref", TUESDAY, FakeLaterDates({"in.a": {TUESDAY}})
    )
    assert [candidate.business_date for candidate in candidates] == [WEDNESDAY]


def test_an_input_that_does_not_trigger_can_complete_the_inputs() -> None:
    spec = project(a="in.a", b={"dataset": "in.b", "triggers": False})
    candidates = list(Subscriptions(spec).candidates("in.b", TUESDAY))
    assert [candidate.business_date for candidate in candidates] == [TUESDAY]
    history = FakeHistory({"in.a": ["2026-09-01.1"], "in.b": ["2026-09-01.1"]})
    assert isinstance(decide("make", spec.processes["make"], TUESDAY, history), Ready)


def test_versions_that_are_current_again_start_a_new_run_under_another_key() -> None:
    spec = project(a="in.a")
    first, second = {"a": ("2026-09-01.1",)}, {"a": ("2026-09-01.2",)}
    before = decide("make", spec.processes["make"], TUESDAY, FakeHistory({"in.a": first["a"]}))
    # The second version was read and then retracted.
    after = decide(
        "make", spec.processes["make"], TUESDAY, FakeHistory({"in.a": first["a"]}, [second, first])
    )
    assert isinstance(before, Ready)
    assert isinstance(after, Ready)
    assert after.run_key != before.run_key
