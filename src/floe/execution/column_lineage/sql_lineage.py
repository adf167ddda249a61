"""Column lineage of a process's outputs, from its SQL steps. Pure, and cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from floe.execution.column_lineage.model import (
    ColumnLineage,
    NamedColumn,
    OutputLineage,
    Relation,
    Source,
    UnknowableError,
    Use,
    drop_known_rows,
    index_columns,
    rows_of,
)
from floe.execution.column_lineage.sql_expressions import Environment
from floe.execution.column_lineage.sql_queries import evaluate

DIALECT = "spark"
Names = tuple[tuple[str, tuple[str, ...]], ...]


class ColumnLike(Protocol):
    """A column of an input or output; only its name is used."""

    @property
    def name(self) -> str: ...


Schemas = Mapping[str, Sequence[ColumnLike]]
Declared = Mapping[str, Mapping[str, Sequence[str]]]
_NONE: Declared = MappingProxyType({})


@dataclass(frozen=True)
class SqlStep:
    """A named view of a process; `sql` is None if a function computes it."""

    name: str
    sql: str | None


def trace(
    steps: Sequence[SqlStep], inputs: Schemas, outputs: Schemas, declared: Declared = _NONE
) -> dict[str, OutputLineage]:
    """Return the lineage of each output.

    A step sees the inputs and the steps before it. An output is the step of the same name; a single
    output falls back to the last step. If `outputs` gives the written columns, columns without a
    name in the SQL are matched by position. Lineage that the process declares
    (output → column → [input.column]) overrides what the SQL shows.
    """
    traced = _trace(tuple(steps), _names(inputs), _names(outputs))
    return {
        name: drop_known_rows(with_declared(lineage, declared.get(name, {}), inputs))
        for name, lineage in traced.items()
    }


def _names(schemas: Schemas) -> Names:
    return tuple(
        (alias, tuple(column.name for column in columns)) for alias, columns in schemas.items()
    )


@lru_cache(maxsize=512)
def _trace(
    steps: tuple[SqlStep, ...], inputs: Names, outputs: Names
) -> Mapping[str, OutputLineage]:
    relations = _relations(steps, inputs)
    last = next(reversed(relations.values()), None) if len(outputs) == 1 else None
    missing = Relation(unknown="no step produces it")
    return {
        alias: _output(relations.get(alias.lower()) or last or missing, columns)
        for alias, columns in outputs
    }


def _relations(steps: tuple[SqlStep, ...], inputs: Names) -> dict[str, Relation]:
    """Read the steps in order; each sees the inputs and the steps before it."""
    environment = Environment(_inputs(inputs), evaluate)
    relations: dict[str, Relation] = {}
    for step in steps:
        relations[step.name.lower()] = relation = read_step(step, environment)
        environment = environment.with_table(step.name, relation)
    return relations


def input_relations(inputs: Schemas) -> dict[str, Relation]:
    """Return each input as a table, by its alias in lower case."""
    return _inputs(_names(inputs))


def _inputs(inputs: Names) -> dict[str, Relation]:
    return {alias.lower(): _input(alias, columns) for alias, columns in inputs}


def _input(alias: str, columns: Sequence[str]) -> Relation:
    if not columns:
        return Relation(unknown=f"the columns of input '{alias}' are unknown")
    return Relation(
        tuple(
            NamedColumn(name, ColumnLineage(frozenset({Source(alias, name, Use.IDENTITY)})))
            for name in columns
        ),
        rows_of(alias),
    )


def read_step(step: SqlStep, environment: Environment) -> Relation:
    """Return the result of a step, unknown if it cannot be read."""
    if step.sql is None:
        return Relation(unknown=f"step '{step.name}' is a function")
    try:
        relation = evaluate(parse_query(step.sql), environment)
    except UnknowableError as error:
        return Relation(unknown=f"step '{step.name}': {error}")
    except RecursionError:
        return Relation(unknown=f"step '{step.name}': its SQL is nested too deeply")
    return relation


@lru_cache(maxsize=128)
def parse_query(sql: str) -> exp.Query:
    """Parse one query. Cached, because parsing is slow and SQL changes rarely."""
    try:
        statements = parse(sql, dialect=DIALECT)
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise UnknowableError(f"its SQL cannot be parsed ({reason})") from None
    queries = [
        statement
        for statement in statements
        if statement is not None and not isinstance(statement, exp.Semicolon)
    ]
    if len(queries) != 1 or not isinstance(queries[0], exp.Query):
        raise UnknowableError("its SQL must be exactly one query")
    return queries[0]


def _output(relation: Relation, written: Sequence[str]) -> OutputLineage:
    if relation.unknown is not None:
        unknown = ColumnLineage(unknown=relation.unknown)
        columns = dict.fromkeys(written, unknown)
        return OutputLineage(columns, relation.rows, relation.unknown, relation.gaps)
    columns_out = relation.columns
    if len(written) == len(columns_out):
        columns_out = tuple(
            NamedColumn(name, column.lineage) if column.unnamed else column
            for column, name in zip(columns_out, written, strict=True)
        )
    return OutputLineage(_as_written(columns_out, written), relation.rows, None, relation.gaps)


def _as_written(columns: Sequence[NamedColumn], written: Sequence[str]) -> dict[str, ColumnLineage]:
    """Use the spelling of written columns; those missing in the SQL are unknown."""
    by_name = index_columns(columns)
    spelled = {column.name.lower(): column.name for column in columns}
    spelled |= {name.lower(): name for name in written}
    named = {spelled[name]: lineage for name, lineage in by_name.items()}
    for name in written:
        named.setdefault(name, ColumnLineage(unknown=f"the SQL returns no column '{name}'"))
    return named


def with_declared(
    lineage: OutputLineage, declared: Mapping[str, Sequence[str]], inputs: Schemas
) -> OutputLineage:
    """Override lineage with what a process declares: column → [input.column]."""
    if not declared:
        return lineage
    columns = dict(lineage.columns)
    spelled = {name.lower(): name for name in columns}
    for name, sources in declared.items():
        columns[spelled.get(name.lower(), name)] = _declared(sources, inputs)
    return replace(lineage, columns=columns)


def _declared(sources: Sequence[str], inputs: Schemas) -> ColumnLineage:
    lineage_sources = set()
    for text in sources:
        alias, _, column = text.partition(".")
        if alias not in inputs or not column:
            return ColumnLineage(unknown=f"the declared '{text}' is not a column of an input")
        lineage_sources.add(Source(alias, column, Use.TRANSFORMATION))
    return ColumnLineage(frozenset(lineage_sources))
