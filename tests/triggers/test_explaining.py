"""Every combination of inputs, outputs and runs has one answer, and the answer is not wrong."""

from collections.abc import Iterator
from datetime import date
from itertools import product

import pytest

from floe.triggers.explaining import (
    InputFacts,
    InputState,
    OutputFacts,
    OutputState,
    ProcessFacts,
    RunFacts,
    RunState,
    Standing,
    explain,
)

DAY = date(2026, 9, 1)
TAKEN_BACK = (InputState.REJECTED, InputState.RETRACTED)


def an_input(name: str, state: InputState, *, optional: bool, newer: bool) -> InputFacts:
    return InputFacts(
        name,
        state,
        DAY,
        whose=f"delivered by the {name} desk",
        tag=None if state in (InputState.MISSING, InputState.ARRIVED) else f"{DAY}.1",
        reason=f"reason of {name}" if state in (*TAKEN_BACK, InputState.STALE) else "",
        source="raw.feed" if state == InputState.STALE else "",
        optional=optional,
        newer=newer,
    )


def combinations() -> Iterator[ProcessFacts]:
    """All states of two inputs, of an output, of the last run, and whether it read all."""
    inputs = list(product(InputState, (False, True), (False, True)))
    for first, second in product(inputs, inputs):
        read = [
            an_input(name, state, optional=optional, newer=newer)
            for name, (state, optional, newer) in zip(
                ("trades", "rates"), (first, second), strict=True
            )
        ]
        for output, run, consumed in product(OutputState, RunState, (False, True)):
            made = OutputFacts("totals", output, f"{DAY}.1", reason="reason of totals")
            yield ProcessFacts(
                "sum", DAY, read, [made], RunFacts(run, "" if run == "none" else "r-1"), consumed
            )


@pytest.fixture(scope="module")
def answered() -> list[tuple[ProcessFacts, Standing, str, str]]:
    found = []
    for facts in combinations():
        answer = explain(facts)
        found.append((facts, answer.standing, answer.sentence, answer.clause))
    return found


Answered = list[tuple[ProcessFacts, Standing, str, str]]


def test_every_standing_is_reached(answered: Answered) -> None:
    assert {standing for _, standing, _, _ in answered} == set(Standing)


def test_every_answer_is_one_clean_sentence_about_the_process(answered: Answered) -> None:
    for _, _, sentence, clause in answered:
        assert sentence.startswith("sum ")
        assert "None" not in sentence + clause
        assert "  " not in sentence + clause
        assert ".." not in sentence + clause
        assert clause.split(" ")[0] in ("which", "whose")


def test_a_process_runs_only_while_its_run_is_alive(answered: Answered) -> None:
    for facts, standing, _, _ in answered:
        assert (standing == Standing.RUNS) == (facts.run.state == RunState.RUNNING)
        assert (standing == Standing.DEAD) == (facts.run.state == RunState.DEAD)


def test_what_was_rejected_or_retracted_is_never_waited_for(answered: Answered) -> None:
    for facts, standing, sentence, _ in answered:
        refused = [one for one in facts.lacking() if one.state in TAKEN_BACK]
        if refused and facts.run.state not in (RunState.RUNNING, RunState.DEAD):
            assert standing == Standing.BLOCKED
            for one in refused:
                assert f"was {one.state}: {one.reason}" in sentence
                assert one.whose in sentence


def test_ready_and_done_need_every_input_to_be_good(answered: Answered) -> None:
    for facts, standing, _, _ in answered:
        if standing in (Standing.READY, Standing.DONE, Standing.FAILED):
            assert not facts.lacking()
            assert all(one.state != InputState.STALE and not one.newer for one in facts.inputs)


def test_done_needs_good_outputs(answered: Answered) -> None:
    for facts, standing, sentence, _ in answered:
        if standing == Standing.DONE:
            assert all(one.state == OutputState.GOOD for one in facts.outputs)
        if standing == Standing.RETRACTED:
            assert "reason of totals" in sentence


def test_a_missing_required_input_never_counts_as_arrived(answered: Answered) -> None:
    for facts, standing, _, _ in answered:
        if any(one.state == InputState.MISSING for one in facts.lacking()):
            assert standing not in (Standing.ARRIVED, Standing.READY, Standing.DONE)


def test_a_version_in_place_of_a_retracted_one_is_named() -> None:
    output = OutputFacts("totals", OutputState.RETRACTED, f"{DAY}.2", instead=f"{DAY}.1")
    facts = ProcessFacts("sum", DAY, outputs=[output], consumed=True)
    assert f"({DAY}.1 is READY in its place)" in explain(facts).sentence


def test_a_lost_run_is_not_called_failed() -> None:
    facts = ProcessFacts("sum", DAY, run=RunFacts(RunState.LOST, "r-1", "its parent ended"))
    assert explain(facts).sentence == (
        "sum was lost for 2026-09-01: its parent ended. Run: floe run --resume r-1"
    )


def test_a_reason_of_many_lines_stays_one_sentence() -> None:
    run = RunFacts(RunState.FAILED, "r-1", "Column x is missing; line 3;\n+- Project\n+- Scan")
    assert explain(ProcessFacts("sum", DAY, run=run)).sentence == (
        "sum failed for 2026-09-01: Column x is missing; line 3. Run: floe run --resume r-1"
    )


def arrived(name: str, team: str) -> InputFacts:
    return InputFacts(name, InputState.ARRIVED, DAY, f"delivered by {team}")


def test_what_has_arrived_is_not_waited_for() -> None:
    missing = InputFacts("raw.trades", InputState.MISSING, DAY, "delivered by Front Office")
    facts = ProcessFacts("sum", DAY, [arrived("raw.rates", "Market Data"), missing])
    assert explain(facts).sentence == (
        "sum waits for raw.trades of 2026-09-01, delivered by Front Office."
    )


def test_arrivals_upstream_are_told_together_with_the_command_that_reads_them() -> None:
    feeds = [arrived("raw.trades", "Front Office"), arrived("raw.rates", "Market Data")]
    because = explain(ProcessFacts("sum", DAY, feeds)).clause
    totals = InputFacts("totals", InputState.MISSING, DAY, "written by sum", because=because)
    assert explain(ProcessFacts("report", DAY, [totals])).sentence == (
        "report waits for totals of 2026-09-01, written by sum, which has not run: raw.trades of "
        "2026-09-01, delivered by Front Office, and raw.rates of 2026-09-01, delivered by Market "
        "Data, have arrived and have not been read (floe run sum --date 2026-09-01)."
    )


def test_a_cause_is_told_once() -> None:
    rates = InputFacts(
        "raw.rates", InputState.REJECTED, DAY, "delivered by Market Data", f"{DAY}.1", "it is empty"
    )
    because = explain(ProcessFacts("sum", DAY, [rates])).clause
    totals = InputFacts("totals", InputState.MISSING, DAY, "written by sum", because=because)
    assert explain(ProcessFacts("report", DAY, [totals, rates])).sentence == (
        "report cannot run for 2026-09-01: raw.rates 2026-09-01.1, delivered by Market Data, was "
        "rejected: it is empty; totals of 2026-09-01, written by sum, is missing."
    )
