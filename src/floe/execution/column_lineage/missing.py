"""Find columns that SQL reads and that no table in their scope has. Pure.

Only what is certain is reported. A step that uses syntax whose columns depend on more than the
schemas (pivots, generators, templates) is skipped, and so is every step that reads it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import TokenType, exp, tokenize
from sqlglot.errors import SqlglotError

from floe.execution.column_lineage.queries import evaluate
from floe.execution.column_lineage.relations import Relation, UnknowableError
from floe.execution.column_lineage.scopes import Environment, Scope
from floe.execution.column_lineage.tracing import (
    DIALECT,
    Schemas,
    SqlStep,
    input_relations,
    parse_query,
    read_step,
)

# Spark resolves these names without brackets or as columns that no schema has.
_BUILT_IN = frozenset(
    {
        *("current_catalog", "current_database", "current_date", "current_schema", "current_time"),
        *("current_timestamp", "current_user", "localtimestamp", "session_user", "user"),
        *("all", "session_window", "window"),
    }
)
# A name with an underscore in front may be a metadata column of the format; other characters may
# be a name that Spark made for an expression, or a pattern.
_PLAIN_NAME = re.compile(r"[^\W_]\w*")
_UNCERTAIN_NODES = (
    *(exp.Pivot, exp.Lateral, exp.Unnest, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack),
    *(exp.QueryTransform, exp.MatchRecognize),
)
_UNCERTAIN_TOKENS = frozenset(
    {
        *(TokenType.L_BRACE, TokenType.BLOCK_START, TokenType.BLOCK_END, TokenType.PIPE_GT),
        *(TokenType.PARAMETER, TokenType.DOLLAR),
    }
)


class MissingColumn(NamedTuple):
    """A column that a query reads although none of its tables has it."""

    name: str
    line: int
    tables: tuple[str, ...]
    """Where it was looked for: aliases of inputs, names of steps, or names within the query."""
    known: tuple[str, ...]


class RepeatedColumn(NamedTuple):
    """A name that several columns of a result have."""

    name: str
    line: int


@dataclass
class CheckedStep:
    """What a step gives, and which columns it reads that are not there."""

    columns: tuple[str, ...] | None
    """None where they cannot be known for certain."""
    missing: list[MissingColumn] = field(default_factory=list)


def check_columns(steps: Sequence[SqlStep], inputs: Schemas) -> dict[str, CheckedStep]:
    """Check each step on the inputs and the steps before it; the keys are in lower case."""
    environment = Environment(input_relations(inputs), evaluate)
    checked: dict[str, CheckedStep] = {}
    for step in steps:
        missing: dict[MissingColumn, None] = {}
        relation = Relation(unknown="its columns are not certain")
        if is_certain(step.sql):
            collector = replace(environment, on_missing=_Collector(missing))
            relation = read_step(step, collector)
        known = relation.unknown is None and not any(one.unnamed for one in relation.columns)
        columns = tuple(one.name for one in relation.columns) if known else None
        checked[step.name.lower()] = CheckedStep(columns, list(missing))
        environment = environment.having(step.name, relation)
    return checked


def find_repeated(steps: Sequence[SqlStep], inputs: Schemas) -> dict[str, RepeatedColumn]:
    """Return, by step, the first name that several of its columns have; case does not count."""
    environment = Environment(input_relations(inputs), evaluate)
    repeated: dict[str, RepeatedColumn] = {}
    for step in steps:
        relation = read_step(step, environment)
        counts = Counter(one.name.lower() for one in relation.columns if not one.unnamed)
        name = next((name for name, count in counts.items() if count > 1), None)
        if name is not None and step.sql is not None:
            line = _line_of_output(parse_query(step.sql), name)
            repeated[step.name.lower()] = RepeatedColumn(name, line)
        environment = environment.having(step.name, relation)
    return repeated


def is_certain(sql: str | None) -> bool:
    """Tell whether the columns of a query follow from the schemas of its tables alone."""
    if sql is None:
        return False
    try:
        query = parse_query(sql)
        if any(token.token_type in _UNCERTAIN_TOKENS for token in tokenize(sql, DIALECT)):
            return False
    except (UnknowableError, SqlglotError, RecursionError):
        return False
    return not any(_is_uncertain(node) for node in query.walk())


def _is_uncertain(node: exp.Expr) -> bool:
    if isinstance(node, exp.Table):
        # `a join b join c on … on …`: only brackets tell which join sees which table.
        return bool(node.args.get("joins")) and not isinstance(node.parent, exp.Subquery)
    return isinstance(node, _UNCERTAIN_NODES)


class _Collector:
    """Collects missing columns while a step is read."""

    def __init__(self, missing: dict[MissingColumn, None]) -> None:
        self._missing = missing

    def __call__(self, column: exp.Column, scope: Scope) -> None:
        tables = _tables_of(column, scope)
        if not tables or not _may_be_reported(column):
            return
        relations = tables.values()
        if any(one.unnamed for relation in relations for one in relation.columns):
            return
        known = dict.fromkeys(one.name for relation in relations for one in relation.columns)
        line = int(column.this.meta.get("line", 1))
        self._missing[MissingColumn(column.name, line, tuple(tables), tuple(known))] = None


def _may_be_reported(column: exp.Column) -> bool:
    name = column.name
    if name.lower() in _BUILT_IN or _PLAIN_NAME.fullmatch(name) is None:
        return False
    lambdas: list[exp.Lambda] = []
    parent = column.find_ancestor(exp.Lambda)
    while isinstance(parent, exp.Lambda):
        lambdas.append(parent)
        parent = parent.find_ancestor(exp.Lambda)
    variables = {one.name.lower() for outer in lambdas for one in outer.expressions}
    return column.parts[0].name.lower() not in variables


def _tables_of(column: exp.Column, scope: Scope) -> dict[str, Relation]:
    """Return the tables that were searched: the one it is qualified by, or all in its query.

    A qualifier that is no table may be a struct, a variable or a catalog: nothing is certain then.
    """
    qualifier = ".".join(part.name.lower() for part in column.parts[:-1])
    around: Scope | None = scope
    while around is not None:
        named = _named_tables(around, qualifier)
        if named:
            return named
        around = around.outer
    return {}


def _named_tables(scope: Scope, qualifier: str) -> dict[str, Relation]:
    if qualifier:
        tables = {qualifier: scope.tables[qualifier]} if qualifier in scope.tables else {}
    else:
        tables = scope.tables
    return dict(_names(scope.environment, tables))


def _names(environment: Environment, tables: dict[str, Relation]) -> Iterator[tuple[str, Relation]]:
    """Name tables as the process knows them; one with an alias of the query by that alias."""
    origins = {id(relation): name for name, relation in environment.tables.items()}
    for name, relation in {id(one): (name, one) for name, one in tables.items()}.values():
        yield origins.get(id(relation), name), relation


def _line_of_output(query: exp.Query, name: str) -> int:
    """Return the line of the last part of the select list that gives a column of this name."""
    select = query
    while not isinstance(select, exp.Select) and isinstance(select.this, exp.Query):
        select = select.this
    parts = [one for one in select.expressions if one.output_name.lower() == name]
    is_repeated_by_name = len(parts) > 1  # otherwise a star gives at least one of the columns
    if not is_repeated_by_name:
        parts = [one for one in select.expressions if one.is_star] or parts
    lines = [
        int(node.meta["line"]) for part in parts[-1:] for node in part.walk() if "line" in node.meta
    ]
    return max(lines, default=1)
