"""Processes run after those whose outputs they read."""

from typing import Any

from floe.execution.batch import prepare_sorter, upstream_of
from floe.spec import ProcessSpec


def process(inputs: dict[str, Any], output: str) -> ProcessSpec:
    return ProcessSpec.model_validate(
        {"inputs": inputs, "outputs": {"out": output}, "sql": "select 1"}
    )


def test_a_process_waits_for_the_writers_of_its_inputs() -> None:
    waits = upstream_of(
        {"b": process({"a": "risk.a"}, "risk.b"), "a": process({"feed": "raw.feed"}, "risk.a")}
    )
    assert waits == {"a": {}, "b": {"a": True}}


def test_a_process_that_reads_only_earlier_dates_does_not_wait() -> None:
    yesterday = {"dataset": "risk.a", "mapping": "previous_business_day"}
    waits = upstream_of({"a": process({"yesterday": yesterday}, "risk.a")})
    assert waits == {"a": {}}


def test_an_optional_input_is_waited_for_but_not_required() -> None:
    optional = {"dataset": "risk.a", "optional": True}
    waits = upstream_of({"a": process({}, "risk.a"), "b": process({"a": optional}, "risk.b")})
    assert waits["b"] == {"a": False}


def test_independent_processes_are_ready_together() -> None:
    order = prepare_sorter({"a": [], "b": [], "c": ["a", "b"]})
    assert set(order.get_ready()) == {"a", "b"}
    order.done("a", "b")
    assert order.get_ready() == ("c",)
