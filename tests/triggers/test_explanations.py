"""Every combination of inputs, outputs and runs has exactly one correct answer."""

from collections.abc import Iterator
from datetime import date
from itertools import product

import pytest

from floe.triggers.explanations import (
    InputFacts,
    InputState,
    OutputFacts,
    OutputState,
    ProcessFacts,
    ProcessState,
    RunFacts,
    RunState,
    explain,
)

DAY = date(2026, 9, 1)
WITHDRAWN = (InputState.REJECTED, InputState.RETRACTED)


def an_input(name: str, state: InputState, *, optional: bool, newer: bool) -> InputFacts:
    return InputFacts(
        name,
        state,
        DAY,
        origin=f"delivered by the {name} desk",
        tag=None if state in (InputState.MISSING, InputState.ARRIVED) else f"{DAY}.1",
        reason=f"reason of {name}" if state in (*WITHDRAWN, InputState.STALE) else "",
        source="raw.feed" if state == InputState.STALE else "",
        optional=optional,
        newer=newer,
    )


def combinations() -> Iterator[ProcessFacts]:
    """All states of two inputs, an output and the last run, consumed or not."""
    inputs = list(product(InputState, (False, True), (False, True)))
    for first, second in product(inputs, inputs):
        read = [
            an_input(name, state, optional=optional, newer=newer)
            for name, (state, optional, newer) in zip(
                ("trades", "rates"), (first, second), strict=True
            )
        ]
        for output, run, consumed in product(OutputState, RunState, (False, True)):
            totals = OutputFacts("totals", output, f"{DAY}.1", reason="reason of totals")
            yield ProcessFacts(
                "sum", DAY, read, [totals], RunFacts(run, "" if run == "none" else "r-1"), consumed
            )


@pytest.fixture(scope="module")
def answered() -> list[tuple[ProcessFacts, ProcessState, str, str]]:
    answers = []
    for facts in combinations():
        answer = explain(facts)
        answers.append((facts, answer.state, answer.sentence, answer.clause))
    return answers


Answered = list[tuple[ProcessFacts, ProcessState, str, str]]


def test_every_state_is_reached(answered: Answered) -> None:
    assert {state for _, state, _, _ in answered} == set(ProcessState)


def test_every_answer_is_a_well_formed_sentence_about_the_process(answered: Answered) -> None:
    for _, _, sentence, clause in answered:
        assert sentence.startswith("sum ")
        assert "None" not in sentence + clause
        assert "  " not in sentence + clause
        assert ".." not in sentence + clause
        assert clause.split(" ")[0] in ("which", "whose")


def test_a_process_runs_only_while_its_run_is_alive(answered: Answered) -> None:
    for facts, state, _, _ in answered:
        assert (state == ProcessState.RUNS) == (facts.run.state == RunState.RUNNING)
        assert (state == ProcessState.DEAD) == (facts.run.state == RunState.DEAD)


def test_a_rejected_or_retracted_input_blocks_instead_of_waiting(answered: Answered) -> None:
    for facts, state, sentence, _ in answered:
        refused = [item for item in facts.unavailable() if item.state in WITHDRAWN]
        if refused and facts.run.state not in (RunState.RUNNING, RunState.DEAD):
            assert state == ProcessState.BLOCKED
            for item in refused:
                assert f"was {item.state}: {item.reason}" in sentence
                assert item.origin in sentence


def test_ready_and_done_need_every_input_to_be_good(answered: Answered) -> None:
    for facts, state, _, _ in answered:
        if state in (ProcessState.READY, ProcessState.DONE, ProcessState.FAILED):
            assert not facts.unavailable()
            assert all(item.state != InputState.STALE and not item.newer for item in facts.inputs)


def test_done_needs_good_outputs(answered: Answered) -> None:
    for facts, state, sentence, _ in answered:
        if state == ProcessState.DONE:
            assert all(output.state == OutputState.GOOD for output in facts.outputs)
        if state == ProcessState.RETRACTED:
            assert "reason of totals" in sentence


def test_a_missing_required_input_never_counts_as_arrived(answered: Answered) -> None:
    for facts, state, _, _ in answered:
        if any(item.state == InputState.MISSING for item in facts.unavailable()):
            assert state not in (ProcessState.ARRIVED, ProcessState.READY, ProcessState.DONE)


def test_the_version_that_replaces_a_retracted_one_is_named() -> None:
    output = OutputFacts("totals", OutputState.RETRACTED, f"{DAY}.2", instead=f"{DAY}.1")
    facts = ProcessFacts("sum", DAY, outputs=[output], consumed=True)
    assert f"({DAY}.1 is READY instead)" in explain(facts).sentence


def test_a_lost_run_is_not_called_failed() -> None:
    facts = ProcessFacts("sum", DAY, run=RunFacts(RunState.LOST, "r-1", "its parent ended"))
    assert explain(facts).sentence == (
        "sum was lost for 2026-09-01: its parent ended. Run: floe run --resume r-1"
    )


def test_only_the_first_line_of_a_reason_is_shown() -> None:
    run = RunFacts(RunState.FAILED, "r-1", "Column x is missing; line 3;\n+- Project\n+- Scan")
    assert explain(ProcessFacts("sum", DAY, run=run)).sentence == (
        "sum failed for 2026-09-01: Column x is missing; line 3. Run: floe run --resume r-1"
    )


def arrived(name: str, team: str) -> InputFacts:
    return InputFacts(name, InputState.ARRIVED, DAY, f"delivered by {team}")


def test_an_input_that_has_arrived_is_not_waited_for() -> None:
    missing = InputFacts("raw.trades", InputState.MISSING, DAY, "delivered by Front Office")
    facts = ProcessFacts("sum", DAY, [arrived("raw.rates", "Market Data"), missing])
    assert explain(facts).sentence == (
        "sum waits for raw.trades of 2026-09-01, delivered by Front Office."
    )


def test_upstream_arrivals_are_listed_with_the_command_that_reads_them() -> None:
    feeds = [arrived("raw.trades", "Front Office"), arrived("raw.rates", "Market Data")]
    because = explain(ProcessFacts("sum", DAY, feeds)).clause
    totals = InputFacts("totals", InputState.MISSING, DAY, "written by sum", because=because)
    assert explain(ProcessFacts("report", DAY, [totals])).sentence == (
        "report waits for totals of 2026-09-01, written by sum, which has not run: raw.trades of "
        "2026-09-01, delivered by Front Office, and raw.rates of 2026-09-01, delivered by Market "
        "Data, have arrived and have not been read (floe run sum --date 2026-09-01)."
    )


def test_a_cause_is_reported_once() -> None:
    rates = InputFacts(
        "raw.rates", InputState.REJECTED, DAY, "delivered by Market Data", f"{DAY}.1", "it is empty"
    )
    because = explain(ProcessFacts("sum", DAY, [rates])).clause
    totals = InputFacts("totals", InputState.MISSING, DAY, "written by sum", because=because)
    assert explain(ProcessFacts("report", DAY, [totals, rates])).sentence == (
        "report cannot run for 2026-09-01: raw.rates 2026-09-01.1, delivered by Market Data, was "
        "rejected: it is empty; totals of 2026-09-01, written by sum, is missing."
    )
