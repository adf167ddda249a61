"""Rules for processes: work, inputs, outputs, cycles and writers."""

from collections.abc import Callable

import pytest

from floe.spec.rules.draft import find_cycles

Find = Callable[..., list[str]]


def process(body: str) -> str:
    """A project with one process; its keys start on line 7."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return (
        "name: x\ndatasets:\n  credit.positions: {}\n  credit.exposure: {}\n"
        f"processes:\n  credit.daily:\n{lines}\n"
    )


OUT = "outputs: {out: credit.exposure}\n"


@pytest.mark.parametrize(
    ("body", "finding"),
    [
        (
            OUT,
            "6: has nothing to run. "
            "Give one of: sql, steps, function, command, statements, procedure.",
        ),
        (
            f"{OUT}sql: select 1\ncommand: ls",
            "9.command: has both sql and command. Keep one of them.",
        ),
        (
            f"{OUT}sql: select 1\nengine: python",
            "9.engine: the engine python does not run sql. Give function, or remove the engine.",
        ),
        (
            f"{OUT}statements: [delete from a]",
            "6.connection: is missing. Name a connection of platform.yaml.",
        ),
        (
            f"{OUT}sql: sql/none.sql",
            "8.sql: the file 'sql/none.sql' does not exist. Create it, or check the path.",
        ),
        (
            f"{OUT}connection: c\nstatements: [sql/none.sql]",
            "9.statements[0]: the file 'sql/none.sql' does not exist. "
            "Create it, or check the path.",
        ),
        (
            f"{OUT}steps:\n  - {{name: a, sql: x}}\n  - {{name: a, sql: x}}",
            "10.steps[1].name: 'a' is already the name of a step. Give the step another name.",
        ),
        (
            f"{OUT}inputs: {{a: credit.positions}}\nsteps: [{{name: a, sql: x}}]",
            "9.steps[0].name: 'a' is already the name of an input. Give the step another name.",
        ),
        (
            f"{OUT}steps: [{{name: a}}]",
            "8.steps[0]: needs either sql or a function. Give exactly one of them.",
        ),
        (
            f"{OUT}sql: x\ninputs: {{a: credit.position}}",
            "9.inputs.a: no dataset named 'credit.position'. Did you mean 'credit.positions'?",
        ),
        (
            f"{OUT}sql: x\ninputs:\n  a:\n    dataset: credit.position",
            "11.inputs.a.dataset: no dataset named 'credit.position'. "
            "Did you mean 'credit.positions'?",
        ),
        (
            f"{OUT}sql: x\ninputs: {{a: {{dataset: credit.positions, mapping: last}}}}",
            "9.inputs.a.count: is missing. Give the number of versions.",
        ),
        (
            f"{OUT}sql: x\ninputs: {{a: {{dataset: credit.positions, count: 3}}}}",
            "9.inputs.a.count: has no effect with mapping same_date. "
            "Use mapping: last, or remove it.",
        ),
        (
            f"{OUT}sql: x\n"
            "inputs: {a: {dataset: credit.positions, mapping: previous_buisness_day}}",
            "9.inputs.a.mapping: 'previous_buisness_day' is not a valid value. "
            "Did you mean 'previous_business_day'?",
        ),
        (
            f"{OUT}sql: x\ninputs: {{a: {{dataset: credit.positions, calendar: NYES}}}}",
            "9.inputs.a.calendar: no calendar named 'NYES'. Did you mean 'NYSE'?",
        ),
        (
            f"{OUT}sql: x\ntrigger: dataset",
            "9.trigger: a process without inputs is never ready. "
            "Give it inputs, or another trigger.",
        ),
        (
            "outputs: {a: credit.exposur}\nsql: x",
            "7.outputs.a: no dataset named 'credit.exposur'. Did you mean 'credit.exposure'?",
        ),
        (
            "inputs: {a: credit.positions}\noutputs: {a: credit.exposure}\nsql: x",
            "8.outputs.a: 'a' is also the alias of an input. Give the output another alias.",
        ),
        (
            "outputs:\n  a:\n    dataset: credit.exposure\n    write: merge\nsql: x",
            "10.outputs.a.write: merge needs keys, which 'credit.exposure' does not declare. "
            "Add keys to the dataset.",
        ),
        (
            "outputs: {a: {dataset: credit.exposure, write: overwrite_partition}}\nsql: x",
            "7.outputs.a.write: overwrite_partition needs partition_column, "
            "which 'credit.exposure' does not declare. Add partition_column to the dataset.",
        ),
        (
            "outputs: {a: credit.exposure, b: credit.positions}\nsql: x",
            "8.sql: one query cannot fill several outputs. "
            "Write steps, one named after each output.",
        ),
        (
            "outputs: {a: credit.exposure, total: credit.positions}\n"
            "steps: [{name: a, sql: x}, {name: totl, sql: x}]",
            "7.outputs.total: no step named 'total'. Did you mean 'totl'?",
        ),
        (
            f"{OUT}sql: x\nrenamed_from: credit.daily",
            "9.renamed_from: 'credit.daily' is still declared. Remove it, or remove renamed_from.",
        ),
        (
            f"{OUT}function: risk.score\ncolumn_lineage: {{ot: {{a: [b.c]}}}}",
            "9.column_lineage.ot: no output named 'ot'. Did you mean 'out'?",
        ),
        (
            f"{OUT}sql: x\nsla: {{max_duration: 20 min}}",
            "9.sla.max_duration: '20 min' is not a duration. Write it as 30s, 20m, 1h30m or 90d.",
        ),
        (
            f"{OUT}sql: x\nsla: {{max_age: 1d}}",
            "9.sla.max_age: unknown key. Valid keys: calendar, day_offset, description, due, "
            "escalate, max_duration, notify, timezone, warn_before.",
        ),
        (
            f"{OUT}function: score",
            "8.function: 'score' is not a function. "
            "Write it as module.function, such as risk.scoring.rate.",
        ),
    ],
)
def test_mistake_in_a_process_is_found_on_its_line(find: Find, body: str, finding: str) -> None:
    location, rest = finding.split(": ", 1)
    line, dot, key = location.partition(".")
    assert find(process(body)) == [f"floe.yaml:{line}: processes.credit.daily{dot}{key}: {rest}"]


@pytest.mark.parametrize(
    ("body", "engine"),
    [
        ("sql: select 1", "spark_sql"),
        ("steps: [{name: a, function: risk.rate}]", "spark_sql"),
        ("function: risk.score", "pyspark"),
        ("function: risk.score\nengine: python", "python"),
        ("command: [java, -jar, score.jar]\nenvironment: {KEY: 'secret://env/KEY'}", "command"),
        ("procedure: risk.refresh\nconnection: risk_db", "database"),
    ],
)
def test_engine_is_derived_from_the_work(
    find: Find, write: Callable[..., object], body: str, engine: str
) -> None:
    from floe.settings import ProjectPaths
    from floe.spec import load_project

    paths = write(process(f"{OUT}{body}"))
    assert isinstance(paths, ProjectPaths)
    assert load_project(paths, {}).spec.processes["credit.daily"].runs_on == engine


def test_invalid_work_is_not_also_missing(find: Find) -> None:
    (finding,) = find(process(f"{OUT}sql: [select 1]"))
    assert finding.startswith("floe.yaml:8: processes.credit.daily.sql: must be text")


def flow(*processes: str) -> str:
    """A project with processes written as `name: inputs → output`."""
    lines = ["name: x", "datasets: {d.a: , d.b: , d.c: , d.d: }", "processes:"]
    for text in processes:
        name, inputs, output = (part.strip() for part in text.replace("→", ":").split(":"))
        aliases = ", ".join(f"in_{i}: {dataset}" for i, dataset in enumerate(inputs.split()))
        lines.append(f"  {name}: {{inputs: {{{aliases}}}, outputs: {{out: {output}}}, sql: x}}")
    return "\n".join(lines)


def test_chain_is_not_a_cycle(find: Find) -> None:
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


def test_reading_an_earlier_date_is_not_a_cycle(find: Find) -> None:
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


def test_two_cycles_are_two_findings_and_their_downstream_none(find: Find) -> None:
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
        "Let one process write it, or set writers: many on the dataset."
    ]
    assert not find(text.replace("d.c: ,", "d.c: {writers: many},"))


def test_each_cycle_is_found_once_in_any_order() -> None:
    graph = {"a": {"c"}, "b": {"a"}, "c": {"b"}, "d": {"c", "d"}, "e": set[str]()}
    assert find_cycles(graph) == [["a", "b", "c"], ["d"]]
