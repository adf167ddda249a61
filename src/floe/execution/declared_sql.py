"""Check the SQL of processes against the declared schemas, before anything runs."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from floe.execution.column_lineage import SqlStep, check_columns, find_repeated
from floe.settings import ProjectPaths
from floe.spec import (
    Column,
    LoadedProject,
    ProcessSpec,
    ProjectSpec,
    Validation,
    load_project,
    validate_project,
)
from floe.spec.document import LocatedTree, locate
from floe.spec.findings import Finding, KeyPath, Problem, SpecError, sort_findings
from floe.spec.nearby import suggest
from floe.spec.sql import is_sql_file, read_sql

EXACT_FORMATS = ("csv", "fixed_width", "jdbc")
"""Formats that are read with the declared columns and no others."""


def validate_with_sql(paths: ProjectPaths, environ: Mapping[str, str] | None = None) -> Validation:
    """Validate a project and the SQL of its processes."""
    return with_sql_findings(paths, validate_project(paths, environ))


def with_sql_findings(paths: ProjectPaths, validation: Validation) -> Validation:
    """Add findings about the SQL of the processes."""
    sql_findings = check_declared_sql(paths.root, validation.document, validation.spec)
    return replace(validation, findings=sort_findings([*validation.findings, *sql_findings]))


def load_with_sql(
    paths: ProjectPaths, environ: Mapping[str, str], process: str | None = None
) -> LoadedProject:
    """Load a project; raise if the SQL of `process` (default: of any) is invalid."""
    loaded = load_project(paths, environ)
    only = None if process is None else [process]
    findings = list(check_declared_sql(paths.root, loaded.document, loaded.spec, only))
    if findings:
        raise SpecError(findings)
    return loaded


def check_declared_sql(
    root: Path, document: LocatedTree, spec: ProjectSpec, only: Collection[str] | None = None
) -> Iterator[Finding]:
    """Find missing columns, and results with two columns of the same name."""
    project = _Project(root, spec)
    for name in spec.processes if only is None else only:
        if name in spec.processes:
            for problem in _check(project, name):
                yield locate(document, problem)


class _Query(NamedTuple):
    """The SQL of a step, and its key in floe.yaml."""

    path: KeyPath
    written: str
    sql: str | None

    def problem(self, line: int, message: str, hint: str) -> Problem:
        where = "the query" if not is_sql_file(self.written) else self.written
        return Problem(self.path, f"{where} line {line}: {message}", hint)


class _Project:
    """The queries of a project, and the known columns of its datasets."""

    def __init__(self, root: Path, spec: ProjectSpec) -> None:
        self.root, self.spec = root, spec
        self._columns: dict[str, tuple[Column, ...]] = {}

    def queries(self, name: str) -> dict[str, _Query]:
        """Return a process's queries by step; `sql` is None if there is no readable SQL."""
        process = self.spec.processes[name]
        path: KeyPath = ("processes", name)
        if process.sql is not None:
            (alias, *_) = process.outputs or ("sql",)
            return {alias: self._query((*path, "sql"), process.sql)}
        return {
            step.name: self._query((*path, "steps", index, "sql"), step.sql)
            for index, step in enumerate(process.steps)
        }

    def _query(self, path: KeyPath, written: str | None) -> _Query:
        if written is None or (is_sql_file(written) and not (self.root / written).is_file()):
            return _Query(path, written or "", None)
        return _Query(path, written, read_sql(self.root, written))

    def declared(self, process: ProcessSpec) -> dict[str, Sequence[Column]]:
        """Return the declared columns of each input."""
        datasets = self.spec.datasets
        return {
            alias: datasets[process_input.dataset].columns
            if process_input.dataset in datasets
            else ()
            for alias, process_input in process.inputs.items()
        }

    def certain(self, process: ProcessSpec) -> dict[str, Sequence[Column]]:
        """Return all columns of each input; empty if undeclared columns are possible."""
        return {
            alias: self._all_columns(process_input.dataset)
            for alias, process_input in process.inputs.items()
        }

    @cached_property
    def _writers(self) -> dict[str, list[tuple[str, str]]]:
        writers: dict[str, list[tuple[str, str]]] = {}
        for name, process in self.spec.processes.items():
            for alias, output in process.outputs.items():
                writers.setdefault(output.dataset, []).append((name, alias))
        return writers

    def _all_columns(self, dataset: str) -> tuple[Column, ...]:
        if dataset not in self._columns:
            self._columns[dataset] = ()  # for a process that reads its own output: unknown
            self._columns[dataset] = self._find_columns(dataset)
        return self._columns[dataset]

    def _find_columns(self, dataset: str) -> tuple[Column, ...]:
        """Return the declared columns and those that its writers add; empty if unknown."""
        spec = self.spec.datasets.get(dataset)
        if spec is None or not spec.columns or spec.format in EXACT_FORMATS:
            return () if spec is None else spec.columns
        columns = {column.name.lower(): column for column in spec.columns}
        for process, alias in self._writers.get(dataset, ()):
            written = self._written(process, alias)
            if written is None:
                return ()
            for name in written:
                columns.setdefault(name.lower(), Column(name=name, type="string"))
        return tuple(columns.values())

    def _written(self, name: str, alias: str) -> tuple[str, ...] | None:
        process = self.spec.processes[name]
        if process.runs_on != "spark_sql":
            return None
        queries = self.queries(name)
        checked = check_columns(_steps(queries), self.certain(process))
        last = next(reversed(checked.values()), None) if len(process.outputs) == 1 else None
        step = checked.get(alias.lower()) or last
        return None if step is None else step.columns


def _check(project: _Project, name: str) -> Iterator[Problem]:
    process = project.spec.processes[name]
    if process.runs_on != "spark_sql":
        return
    queries = project.queries(name)
    by_step = {step.lower(): query for step, query in queries.items()}
    steps = _steps(queries)
    for step, column in find_repeated(steps, project.declared(process)).items():
        message = f"the result has several columns named '{column.name}'"
        hint = "Name each column of the result once."
        yield by_step[step].problem(column.line, message, hint)
    for step, result in check_columns(steps, project.certain(process)).items():
        for missing in result.missing:
            tables = " or ".join(_shown(process, table) for table in missing.tables)
            message = f"no column '{missing.name}' in {tables}"
            yield by_step[step].problem(
                missing.line, message, suggest(missing.name, missing.known, "")
            )


def _steps(queries: Mapping[str, _Query]) -> list[SqlStep]:
    return [SqlStep(name, query.sql) for name, query in queries.items()]


def _shown(process: ProcessSpec, table: str) -> str:
    """Show an input by its dataset, and a step or subquery by its name."""
    inputs = {
        alias.lower(): process_input.dataset for alias, process_input in process.inputs.items()
    }
    return inputs.get(table, f"'{table}'")
