"""Check the SQL of processes on the schemas that their inputs declare, before anything runs."""

from collections.abc import Iterator
from pathlib import Path

from floe.execution.column_lineage import SqlStep, repeated_columns
from floe.spec import ProcessSpec, ProjectSpec
from floe.spec.document import Located, locate
from floe.spec.findings import Finding, KeyPath, Problem
from floe.spec.sql_files import names_file, read_sql


def check_declared_sql(root: Path, document: Located, spec: ProjectSpec) -> Iterator[Finding]:
    """Find queries whose result has two columns of one name: no format can write them."""
    for name, process in spec.processes.items():
        if process.runs_on == "spark_sql":
            for problem in _check(root, ("processes", name), spec, process):
                yield locate(document, problem)


def _check(root: Path, path: KeyPath, spec: ProjectSpec, process: ProcessSpec) -> Iterator[Problem]:
    queries = _queries(root, path, process)
    inputs = {
        alias: spec.datasets[one.dataset].columns
        for alias, one in process.inputs.items()
        if one.dataset in spec.datasets
    }
    steps = [SqlStep(name, sql) for name, (_, _, sql) in queries.items()]
    for name, columns in repeated_columns(steps, inputs).items():
        at, written, _ = next(one for key, one in queries.items() if key.lower() == name)
        where = written if names_file(written) else "the query"
        message = f"{where} gives several columns named '{columns[0]}'"
        yield Problem(at, message, "Name each column of the result once.")


def _queries(
    root: Path, path: KeyPath, process: ProcessSpec
) -> dict[str, tuple[KeyPath, str, str | None]]:
    """Return the key, the text as written and the SQL of each step; missing files are left out."""
    written: dict[str, tuple[KeyPath, str | None]] = {
        step.name: ((*path, "steps", index, "sql"), step.sql)
        for index, step in enumerate(process.steps)
    }
    if process.sql is not None:
        written = {"sql": ((*path, "sql"), process.sql)}
    return {name: (at, sql or "", _read(root, sql)) for name, (at, sql) in written.items()}


def _read(root: Path, sql: str | None) -> str | None:
    if sql is None or (names_file(sql) and not (root / sql).is_file()):
        return None
    return read_sql(root, sql)
