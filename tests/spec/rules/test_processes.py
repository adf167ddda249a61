"""The work of a process is whole, and its inputs and outputs fit the datasets."""

from collections.abc import Callable

import pytest

Find = Callable[..., list[str]]


def process(body: str) -> str:
    """A project with one process whose keys are given; they begin on line 7."""
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
            "6: does nothing. Give one of: sql, steps, function, command, statements, procedure.",
        ),
        (
            f"{OUT}sql: select 1\ncommand: ls",
            "9.command: has both sql and command. Keep one of them.",
        ),
        (
            f"{OUT}sql: select 1\nengine: python",
            "9.engine: the engine python does not run sql. Give function, or leave the engine out.",
        ),
        (
            f"{OUT}statements: [delete from a]",
            "6.connection: is missing. Name a connection of platform.yaml.",
        ),
        (
            f"{OUT}sql: sql/none.sql",
            "8.sql: there is no file 'sql/none.sql'. Write it, or check the path.",
        ),
        (
            f"{OUT}connection: c\nstatements: [sql/none.sql]",
            "9.statements[0]: there is no file 'sql/none.sql'. Write it, or check the path.",
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
            "8.steps[0]: needs either sql or a function. Give one of the two.",
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
            "9.inputs.a.count: is missing. Say how many versions.",
        ),
        (
            f"{OUT}sql: x\ninputs: {{a: {{dataset: credit.positions, count: 3}}}}",
            "9.inputs.a.count: means nothing with mapping same_date. "
            "Use mapping: last, or remove it.",
        ),
        (
            f"{OUT}sql: x\n"
            "inputs: {a: {dataset: credit.positions, mapping: previous_buisness_day}}",
            "9.inputs.a.mapping: 'previous_buisness_day' is not a choice here. "
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
            "8.outputs.a: 'a' is an input too. Give the output another alias.",
        ),
        (
            "outputs:\n  a:\n    dataset: credit.exposure\n    write: merge\nsql: x",
            "10.outputs.a.write: merge needs keys, which 'credit.exposure' does not have. "
            "Add keys to the dataset.",
        ),
        (
            "outputs: {a: {dataset: credit.exposure, write: overwrite_partition}}\nsql: x",
            "7.outputs.a.write: overwrite_partition needs partition_column, "
            "which 'credit.exposure' does not have. Add partition_column to the dataset.",
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
            "9.sla.max_age: unknown key. Known here: calendar, day_offset, description, due, "
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
    place, rest = finding.split(": ", 1)
    line, dot, key = place.partition(".")
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
def test_engine_follows_from_the_work(
    find: Find, write: Callable[..., object], body: str, engine: str
) -> None:
    from floe.settings import ProjectPaths
    from floe.spec import load_project

    paths = write(process(f"{OUT}{body}"))
    assert isinstance(paths, ProjectPaths)
    assert load_project(paths, {}).spec.processes["credit.daily"].runs_on == engine


def test_wrong_work_is_not_also_missing_work(find: Find) -> None:
    (finding,) = find(process(f"{OUT}sql: [select 1]"))
    assert finding.startswith("floe.yaml:8: processes.credit.daily.sql: must be text")
