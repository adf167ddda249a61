"""From the SQL of a process to the lineage of what it writes. Pure, and cached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from floe.execution.column_lineage.model import (
    ColumnLineage,
    OutputLineage,
    Source,
    Use,
    drop_known_rows,
    rows_of,
)
from floe.execution.column_lineage.queries import evaluate
from floe.execution.column_lineage.relations import (
    NamedColumn,
    Relation,
    UnknowableError,
    index_columns,
)
from floe.execution.column_lineage.scopes import Environment

DIALECT = "spark"
Names = tuple[tuple[str, tuple[str, ...]], ...]


class ColumnLike(Protocol):
    """A column of an input or an output; its name is all that counts here."""

    @property
    def name(self) -> str: ...


Schemas = Mapping[str, Sequence[ColumnLike]]
Declared = Mapping[str, Mapping[str, Sequence[str]]]
_NONE: Declared = MappingProxyType({})


@dataclass(frozen=True)
class SqlStep:
    """A named view of a process; without SQL it is made by a function, which cannot be read."""

    name: str
    sql: str | None


def trace(
    steps: Sequence[SqlStep], inputs: Schemas, outputs: Schemas, declared: Declared = _NONE
) -> dict[str, OutputLineage]:
    """Return the lineage of each output.

    A step sees the inputs, and the steps before it. An output is the step of its name; the only
    output is otherwise the last step. The columns of an output may be given as they were written:
    columns to which the SQL gives no name are then known by their place. What a process declares
    (output → column → [input.column]) stands above what is found.
    """
    traced = _trace(tuple(steps), _names(inputs), _names(outputs))
    return {
        name: drop_known_rows(with_declared(lineage, declared.get(name, {}), inputs))
        for name, lineage in traced.items()
    }


def _names(schemas: Schemas) -> Names:
    return tuple((alias, tuple(one.name for one in columns)) for alias, columns in schemas.items())


@lru_cache(maxsize=512)
def _trace(
    steps: tuple[SqlStep, ...], inputs: Names, outputs: Names
) -> Mapping[str, OutputLineage]:
    made = _relations(steps, inputs)
    last = next(reversed(made.values()), None) if len(outputs) == 1 else None
    missing = Relation(unknown="no step makes it")
    return {
        alias: _output(made.get(alias.lower()) or last or missing, columns)
        for alias, columns in outputs
    }


def _relations(steps: tuple[SqlStep, ...], inputs: Names) -> dict[str, Relation]:
    """Read the steps one after the other; each sees the inputs and the steps before it."""
    environment = Environment(_inputs(inputs), evaluate)
    made: dict[str, Relation] = {}
    for step in steps:
        made[step.name.lower()] = relation = read_step(step, environment)
        environment = environment.having(step.name, relation)
    return made


def input_relations(inputs: Schemas) -> dict[str, Relation]:
    """Return each input as a table, by its alias in lower case."""
    return _inputs(_names(inputs))


def _inputs(inputs: Names) -> dict[str, Relation]:
    return {alias.lower(): _input(alias, columns) for alias, columns in inputs}


def _input(alias: str, columns: Sequence[str]) -> Relation:
    if not columns:
        return Relation(unknown=f"the columns of input '{alias}' are not known")
    return Relation(
        tuple(
            NamedColumn(name, ColumnLineage(frozenset({Source(alias, name, Use.IDENTITY)})))
            for name in columns
        ),
        rows_of(alias),
    )


def read_step(step: SqlStep, environment: Environment) -> Relation:
    """Return what a step gives."""
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
    """Parse one query. Cached: parsing takes most of the time, and schemas change more often."""
    try:
        found = parse(sql, dialect=DIALECT)
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise UnknowableError(f"its SQL cannot be read ({reason})") from None
    queries = [one for one in found if one is not None and not isinstance(one, exp.Semicolon)]
    if len(queries) != 1 or not isinstance(queries[0], exp.Query):
        raise UnknowableError("its SQL is not one query")
    return queries[0]


def _output(relation: Relation, written: Sequence[str]) -> OutputLineage:
    if relation.unknown is not None:
        unknown = ColumnLineage(unknown=relation.unknown)
        columns = dict.fromkeys(written, unknown)
        return OutputLineage(columns, relation.rows, relation.unknown, relation.gaps)
    made = relation.columns
    if len(written) == len(made):
        made = tuple(
            NamedColumn(name, one.lineage) if one.unnamed else one
            for one, name in zip(made, written, strict=True)
        )
    return OutputLineage(_as_written(made, written), relation.rows, None, relation.gaps)


def _as_written(columns: Sequence[NamedColumn], written: Sequence[str]) -> dict[str, ColumnLineage]:
    """Spell columns as they were written, and say of those that the SQL lacks that it does."""
    found = index_columns(columns)
    spelled = {one.name.lower(): one.name for one in columns}
    spelled |= {name.lower(): name for name in written}
    named = {spelled[name]: lineage for name, lineage in found.items()}
    for name in written:
        named.setdefault(name, ColumnLineage(unknown=f"the SQL gives no column '{name}'"))
    return named


def with_declared(
    lineage: OutputLineage, declared: Mapping[str, Sequence[str]], inputs: Schemas
) -> OutputLineage:
    """Put what a process declares of an output (column → [input.column]) above what was found."""
    if not declared:
        return lineage
    columns = dict(lineage.columns)
    spelled = {name.lower(): name for name in columns}
    for name, sources in declared.items():
        columns[spelled.get(name.lower(), name)] = _declared(sources, inputs)
    return replace(lineage, columns=columns)


def _declared(sources: Sequence[str], inputs: Schemas) -> ColumnLineage:
    found = set()
    for text in sources:
        alias, _, column = text.partition(".")
        if alias not in inputs or not column:
            return ColumnLineage(unknown=f"'{text}' is declared, and is no column of an input")
        found.add(Source(alias, column, Use.TRANSFORMATION))
    return ColumnLineage(frozenset(found))
