"""Dependencies that would close a circle are left out."""

from floe.orchestration.cycles import without_cycles

UPSTREAM = {"report": ["totals"], "totals": ["trades"]}


def test_what_stands_on_a_node_cannot_be_below_it() -> None:
    assert without_cycles(UPSTREAM, ["totals"], ["report", "totals"]) == []


def test_what_does_not_stand_on_a_node_stays() -> None:
    assert without_cycles(UPSTREAM, ["totals"], ["trades", "rates"]) == ["trades", "rates"]
