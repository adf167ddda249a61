"""Rules for processes: the work is whole, and inputs and outputs fit the datasets."""

from collections.abc import Iterator

from floe.spec.datasets import DatasetSpec
from floe.spec.findings import KeyPath, Problem
from floe.spec.processes import Input, ProcessSpec
from floe.spec.rules.calendars import unknown_calendar
from floe.spec.rules.draft import Draft
from floe.spec.rules.files import missing_file

WORK = ("sql", "steps", "function", "command", "statements", "procedure")
ENGINES = {
    "spark_sql": ("sql", "steps"),
    "pyspark": ("function", "steps"),
    "python": ("function",),
    "command": ("command",),
    "database": ("statements", "procedure"),
}


def check_processes(draft: Draft) -> Iterator[Problem]:
    """Find what is wrong with each process."""
    for name, process in draft.spec.processes.items():
        path = ("processes", name)
        yield from _check_work(draft, path, process)
        yield from _check_steps(draft, path, process)
        yield from _check_inputs(draft, path, process)
        yield from _check_outputs(draft, path, process)
        yield from _check_surroundings(draft, path, process)


def _check_work(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    given = [key for key in WORK if key in draft.written(path)]
    if draft.lacks(path, ProcessSpec, *WORK):
        hint = f"Give one of: {', '.join(WORK)}."
        yield Problem(path, "does nothing", hint, at_key=True)
    elif len(given) > 1:
        message = f"has both {given[0]} and {given[1]}"
        yield Problem((*path, given[1]), message, "Keep one of them.", at_key=True)
    elif given and process.engine is not None and given[0] not in ENGINES[process.engine]:
        wanted = " or ".join(ENGINES[process.engine])
        message = f"the engine {process.engine} does not run {given[0]}"
        yield Problem((*path, "engine"), message, f"Give {wanted}, or leave the engine out.")
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
            yield Problem(at, "needs either sql or a function", "Give one of the two.", also=also)
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
            yield Problem((*at, "count"), "is missing", "Say how many versions.", at_key=True)
        if input_.mapping != "last" and input_.count is not None:
            message = f"means nothing with mapping {input_.mapping}"
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
            message = f"'{alias}' is an input too"
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
        message = f"{mode} needs {needs}, which '{name}' does not have"
        at = ("datasets", name, needs)
        yield Problem((*path, "write"), message, f"Add {needs} to the dataset.", also=(at,))


def _check_output_steps(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    """Each of several outputs is the result of the step that has its name."""
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
            otherwise = "Name the step that makes it like the output."
            yield draft.unknown((*path, "outputs", alias), "step", alias, steps, otherwise)


def _check_surroundings(draft: Draft, path: KeyPath, process: ProcessSpec) -> Iterator[Problem]:
    if process.sla is not None:
        yield from unknown_calendar(draft, (*path, "sla", "calendar"), process.sla.calendar)
    if process.renamed_from is not None and process.renamed_from in draft.names("processes"):
        message = f"'{process.renamed_from}' is still declared"
        yield Problem((*path, "renamed_from"), message, "Remove it, or remove renamed_from.")
    for alias in process.column_lineage:
        if alias not in process.outputs:
            at = (*path, "column_lineage", alias)
            yield draft.unknown(at, "output", alias, process.outputs, "Name one of the outputs.")
