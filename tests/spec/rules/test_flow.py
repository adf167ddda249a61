"""Nothing is its own upstream, and each dataset has one writer."""

from collections.abc import Callable

from floe.spec.rules.cycles import find_cycles

Find = Callable[..., list[str]]


def flow(*processes: str) -> str:
    """A project whose processes are given as `name: inputs → output`."""
    lines = ["name: x", "datasets: {d.a: , d.b: , d.c: , d.d: }", "processes:"]
    for text in processes:
        name, inputs, output = (part.strip() for part in text.replace("→", ":").split(":"))
        aliases = ", ".join(f"in_{i}: {one}" for i, one in enumerate(inputs.split()))
        lines.append(f"  {name}: {{inputs: {{{aliases}}}, outputs: {{out: {output}}}, sql: x}}")
    return "\n".join(lines)


def test_chain_is_no_cycle(find: Find) -> None:
    assert not find(flow("p: d.a → d.b", "q: d.a d.b → d.c", "r: d.b d.c → d.d"))


def test_cycle_is_printed_as_the_path_of_the_data(find: Find) -> None:
    (finding,) = find(flow("p: d.c → d.a", "q: d.a → d.b", "r: d.b → d.c"))
    assert finding == (
        "floe.yaml:4: processes.p.inputs.in_0: the process is its own upstream: "
        "p → d.a → q → d.b → r → d.c → p. "
        "Break the cycle, or read an earlier date (mapping: previous_business_day)."
    )


def test_process_that_reads_its_own_output_is_a_cycle(find: Find) -> None:
    (finding,) = find(flow("p: d.a → d.a"))
    assert "p → d.a → p" in finding


def test_reading_an_earlier_date_closes_no_cycle(find: Find) -> None:
    assert not find(
        """
        name: x
        datasets: {credit.balance: {}}
        processes:
          credit.roll:
            inputs:
              yesterday: {dataset: credit.balance, mapping: previous_business_day}
            outputs: {balance: credit.balance}
            sql: select 1
        """
    )


def test_two_cycles_are_two_findings_and_what_follows_them_is_none(find: Find) -> None:
    findings = find(
        flow("p: d.b → d.a", "q: d.a → d.b", "r: d.d → d.c", "s: d.c → d.d").replace(
            "datasets: {", "datasets: {d.e: , "
        )
        + "\n  t: {inputs: {a: d.a}, outputs: {e: d.e}, sql: x}"
    )
    assert [finding.split(":")[1] for finding in findings] == ["4", "6"]


def test_second_writer_is_a_finding_unless_many_are_allowed(find: Find) -> None:
    text = flow("p: d.a → d.c", "q: d.b → d.c")
    assert find(text) == [
        "floe.yaml:5: processes.q.outputs.out: 'd.c' is already written by 'p'. "
        "Let one process write it, or say writers: many on the dataset."
    ]
    assert not find(text.replace("d.c: ,", "d.c: {writers: many},"))


def test_cycles_are_found_in_any_order_and_each_once() -> None:
    graph = {"a": {"c"}, "b": {"a"}, "c": {"b"}, "d": {"c", "d"}, "e": set[str]()}
    assert find_cycles(graph) == [["a", "b", "c"], ["d"]]
