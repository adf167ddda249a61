"""Rules for processes: work, steps, inputs, outputs, writers and cycles."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from floe.spec.datasets import DatasetSpec
from floe.spec.findings import KeyPath, Problem
from floe.spec.processes import EARLIER_DATES, Input, ProcessSpec
from floe.spec.rules.draft import Draft, find_cycles, missing_file, unknown_calendar

WORK = ("sql", "steps", "function", "command", "statements", "procedure")
ENGINES = {
    "spark_sql": ("sql", "steps"),
    "pyspark": ("function", "steps"),
    "python": ("function",),
    "command": ("command",),
    "database": ("statements", "procedure"),
}


def check_processes(draft: Draft) -> Iterator[Problem]:
    """Find the problems of each process."""
    for name, process in draft.spec.processes.items():
        path = ("processes", name)
        yield from _check_work(draft, path, process)
        yield from _check_steps(draft, path, process)
        yield from _check_inputs(draft, path, process)
        yield from _check_outputs(draft, path, process)
        yield from _check_references(draft, path, process)


def _check_work(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    given = [key for key in WORK if key in draft.written(path)]
    if draft.lacks(path, ProcessSpec, *WORK):
        hint = f"Give one of: {', '.join(WORK)}."
        yield Problem(path, "has nothing to run", hint, at_key=True)
    elif len(given) > 1:
        message = f"has both {given[0]} and {given[1]}"
        yield Problem((*path, given[1]), message, "Keep one of them.", at_key=True)
    elif given and process.engine is not None and given[0] not in ENGINES[process.engine]:
        wanted = " or ".join(ENGINES[process.engine])
        message = f"the engine {process.engine} does not run {given[0]}"
        yield Problem((*path, "engine"), message, f"Give {wanted}, or remove the engine.")
    if process.runs_on == "database" and draft.lacks(path, ProcessSpec, "connection"):
        hint = "Name a connection of platform.yaml."
        yield Problem((*path, "connection"), "is missing", hint, at_key=True)
    if process.sql is not None:
        yield from missing_file(draft, (*path, "sql"), process.sql)
    for index, statement in enumerate(process.statements):
        yield from missing_file(draft, (*path, "statements", index), statement)


def _check_steps(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    seen = dict.fromkeys(process.inputs, "an input")
    for index, step in enumerate(process.steps):
        at = (*path, "steps", index)
        if step.name in seen:
            message = f"'{step.name}' is already the name of {seen[step.name]}"
            yield Problem((*at, "name"), message, "Give the step another name.")
        seen[step.name] = "a step"
        if (step.sql is None) == (step.function is None):
            also = ((*at, "sql"), (*at, "function"))
            yield Problem(
                at, "needs either sql or a function", "Give exactly one of them.", also=also
            )
        if step.sql is not None:
            yield from missing_file(draft, (*at, "sql"), step.sql)


def _check_inputs(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    datasets = draft.names("datasets")
    for alias, input_ in process.inputs.items():
        at = (*path, "inputs", alias)
        if input_.dataset not in datasets:
            otherwise = "Declare it under datasets."
            named = (*at, "dataset")
            yield draft.unknown(named, "dataset", input_.dataset, datasets, otherwise)
        if input_.mapping == "last" and draft.lacks(at, Input, "count"):
            yield Problem((*at, "count"), "is missing", "Give the number of versions.", at_key=True)
        if input_.mapping != "last" and input_.count is not None:
            message = f"has no effect with mapping {input_.mapping}"
            yield Problem((*at, "count"), message, "Use mapping: last, or remove it.", at_key=True)
        if input_.calendar is not None:
            yield from unknown_calendar(draft, (*at, "calendar"), input_.calendar)
    empty = "inputs" in draft.written(path) and not draft.written((*path, "inputs"))
    idle = empty or draft.lacks(path, ProcessSpec, "inputs")
    if process.trigger == "dataset" and idle:
        hint = "Give it inputs, or another trigger."
        message, also = "a process without inputs is never ready", ((*path, "inputs"),)
        yield Problem((*path, "trigger"), message, hint, also=also)


def _check_outputs(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    datasets = draft.names("datasets")
    for alias, output in process.outputs.items():
        at = (*path, "outputs", alias)
        if alias in process.inputs:
            message = f"'{alias}' is also the alias of an input"
            yield Problem(at, message, "Give the output another alias.", at_key=True)
        if output.dataset not in datasets:
            otherwise = "Declare it under datasets."
            named = (*at, "dataset")
            yield draft.unknown(named, "dataset", output.dataset, datasets, otherwise)
        else:
            yield from _check_write(draft, at, output.dataset, output.write)
    yield from _check_output_steps(draft, path, process)


def _check_write(draft: Draft, path: KeyPath, name: str, mode: str) -> Iterator[Problem]:
    written = draft.written(("datasets", name))
    needs = {"merge": "keys", "overwrite_partition": "partition_column"}.get(mode)
    if needs is None:
        return
    empty = needs in written and not written[needs]
    if empty or draft.lacks(("datasets", name), DatasetSpec, needs):
        message = f"{mode} needs {needs}, which '{name}' does not declare"
        at = ("datasets", name, needs)
        yield Problem((*path, "write"), message, f"Add {needs} to the dataset.", also=(at,))


def _check_output_steps(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    """Find outputs without a step of the same name, if there are several outputs."""
    outputs = draft.written((*path, "outputs"))
    if len(outputs) < 2 or process.runs_on != "spark_sql":
        return
    if process.sql is not None:
        message = "one query cannot fill several outputs"
        yield Problem((*path, "sql"), message, "Write steps, one named after each output.")
        return
    steps = {step.name for step in process.steps}
    if len(steps) < draft.length((*path, "steps")):
        return
    for alias in process.outputs:
        if alias not in steps:
            otherwise = "Give the step that computes it the name of the output."
            yield draft.unknown((*path, "outputs", alias), "step", alias, steps, otherwise)


def _check_references(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    if process.sla is not None:
        yield from unknown_calendar(draft, (*path, "sla", "calendar"), process.sla.calendar)
    if process.renamed_from is not None and process.renamed_from in draft.names("processes"):
        message = f"'{process.renamed_from}' is still declared"
        yield Problem((*path, "renamed_from"), message, "Remove it, or remove renamed_from.")
    for alias in process.column_lineage:
        if alias not in process.outputs:
            at = (*path, "column_lineage", alias)
            yield draft.unknown(at, "output", alias, process.outputs, "Name one of the outputs.")


@dataclass(frozen=True)
class _Write:
    process: str
    path: KeyPath


def check_flow(draft: Draft) -> Iterator[Problem]:
    """Find cycles, and datasets with several writers."""
    writes: dict[str, list[_Write]] = defaultdict(list)
    for name, process in draft.spec.processes.items():
        for alias, output in process.outputs.items():
            path = ("processes", name, "outputs", alias)
            writes[output.dataset].append(_Write(name, path))
    yield from _check_writers(draft, writes)
    yield from _check_cycles(draft, writes)


def _check_writers(draft: Draft, writes: dict[str, list[_Write]]) -> Iterator[Problem]:
    for dataset, (first, *others) in writes.items():
        path = ("datasets", dataset)
        mistyped = "writers" not in draft.written(path) and not draft.lacks(
            path, DatasetSpec, "writers"
        )
        if not others or mistyped or draft.written(path).get("writers") == "many":
            continue
        for other in others:
            message = f"'{dataset}' is already written by '{first.process}'"
            hint = "Let one process write it, or set writers: many on the dataset."
            also = (first.path, ("datasets", dataset, "writers"))
            yield Problem(other.path, message, hint, also=also)


def _check_cycles(draft: Draft, writes: dict[str, list[_Write]]) -> Iterator[Problem]:
    reads = {name: _reads(draft, name) for name in draft.spec.processes}
    upstream = {
        name: {write.process for dataset in inputs.values() for write in writes.get(dataset, ())}
        for name, inputs in reads.items()
    }
    for cycle in find_cycles(upstream):
        yield _cycle_problem(cycle, reads, writes)


def _reads(draft: Draft, name: str) -> dict[str, str]:
    """Return the inputs of the same date; inputs of earlier dates cannot form a cycle."""
    inputs = draft.spec.processes[name].inputs
    return {
        alias: input_.dataset
        for alias, input_ in inputs.items()
        if input_.mapping not in EARLIER_DATES
    }


def _cycle_problem(
    cycle: list[str], reads: dict[str, dict[str, str]], writes: dict[str, list[_Write]]
) -> Problem:
    """Return the problem of a cycle, shown as the path of the data."""
    walk: list[str] = []
    paths: list[KeyPath] = []
    for process, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True):
        alias, dataset, write = next(
            (alias, dataset, write)
            for alias, dataset in reads[after].items()
            for write in writes.get(dataset, ())
            if write.process == process
        )
        walk += [process, dataset]
        paths += [("processes", after, "inputs", alias), write.path]
    message = f"the process is its own upstream: {' → '.join([*walk, cycle[0]])}"
    hint = "Break the cycle, or read an earlier date (mapping: previous_business_day)."
    return Problem(paths[-2], message, hint, also=tuple(paths))
