"""Find columns that SQL reads but no table in scope has. Pure.

Only certain findings are reported. A step is skipped if its columns depend on more than the schemas
(pivots, generators, templates), and so is every step that reads it.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sqlglot import TokenType, exp, tokenize
from sqlglot.errors import SqlglotError

from floe.execution.column_lineage.model import Relation, UnknowableError
from floe.execution.column_lineage.sql_expressions import Environment, Scope
from floe.execution.column_lineage.sql_lineage import (
    DIALECT,
    Schemas,
    SqlStep,
    input_relations,
    parse_query,
    read_step,
)
from floe.execution.column_lineage.sql_queries import evaluate

# Spark resolves these names as functions without parentheses or as columns that no schema has.
_BUILT_IN = frozenset(
    {
        *("current_catalog", "current_database", "current_date", "current_schema", "current_time"),
        *("current_timestamp", "current_user", "localtimestamp", "session_user", "user"),
        *("all", "session_window", "window"),
    }
)
# A leading underscore may mean a metadata column of the format; other characters may mean a name
# that Spark generated for an expression, or a pattern.
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
    """A column that a query reads, but that none of its tables has."""

    name: str
    line: int
    tables: tuple[str, ...]
    """Where it was searched: aliases of inputs, names of steps, or names in the query."""
    known: tuple[str, ...]


class RepeatedColumn(NamedTuple):
    """A column name that occurs more than once in a result."""

    name: str
    line: int


@dataclass
class CheckedStep:
    """The columns that a step returns, and the missing columns that it reads."""

    columns: tuple[str, ...] | None
    """None if they are not certain."""
    missing: list[MissingColumn] = field(default_factory=list)


def check_columns(steps: Sequence[SqlStep], inputs: Schemas) -> dict[str, CheckedStep]:
    """Check each step against the inputs and earlier steps; keys are lower case."""
    environment = Environment(input_relations(inputs), evaluate)
    checked: dict[str, CheckedStep] = {}
    for step in steps:
        missing: dict[MissingColumn, None] = {}
        relation = Relation(unknown="its columns are not certain")
        if is_certain(step.sql):
            collector = replace(environment, on_missing=_Collector(missing))
            relation = read_step(step, collector)
        known = relation.unknown is None and not any(column.unnamed for column in relation.columns)
        columns = tuple(column.name for column in relation.columns) if known else None
        checked[step.name.lower()] = CheckedStep(columns, list(missing))
        environment = environment.with_table(step.name, relation)
    return checked


def find_repeated(steps: Sequence[SqlStep], inputs: Schemas) -> dict[str, RepeatedColumn]:
    """Return, by step, the first repeated column name; case-insensitive."""
    environment = Environment(input_relations(inputs), evaluate)
    repeated: dict[str, RepeatedColumn] = {}
    for step in steps:
        relation = read_step(step, environment)
        counts = Counter(column.name.lower() for column in relation.columns if not column.unnamed)
        name = next((name for name, count in counts.items() if count > 1), None)
        if name is not None and step.sql is not None:
            line = _line_of_output(parse_query(step.sql), name)
            repeated[step.name.lower()] = RepeatedColumn(name, line)
        environment = environment.with_table(step.name, relation)
    return repeated


def is_certain(sql: str | None) -> bool:
    """Tell whether the columns of a query depend only on the schemas of its tables."""
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
        # `a join b join c on … on …`: only parentheses tell which join sees which table.
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
        if any(known_column.unnamed for relation in relations for known_column in relation.columns):
            return
        known = dict.fromkeys(
            known_column.name for relation in relations for known_column in relation.columns
        )
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
    variables = {variable.name.lower() for outer in lambdas for variable in outer.expressions}
    return column.parts[0].name.lower() not in variables


def _tables_of(column: exp.Column, scope: Scope) -> dict[str, Relation]:
    """Return the searched tables: the table of its qualifier, or all of its query.

    A qualifier that is not a table may be a struct, a variable or a catalog; then return none.
    """
    qualifier = ".".join(part.name.lower() for part in column.parts[:-1])
    current: Scope | None = scope
    while current is not None:
        named = _named_tables(current, qualifier)
        if named:
            return named
        current = current.outer
    return {}


def _named_tables(scope: Scope, qualifier: str) -> dict[str, Relation]:
    if qualifier:
        tables = {qualifier: scope.tables[qualifier]} if qualifier in scope.tables else {}
    else:
        tables = scope.tables
    return dict(_names(scope.environment, tables))


def _names(environment: Environment, tables: dict[str, Relation]) -> Iterator[tuple[str, Relation]]:
    """Yield tables by their name in the process, else by their alias in the query."""
    origins = {id(relation): name for name, relation in environment.tables.items()}
    for name, relation in {
        id(relation): (name, relation) for name, relation in tables.items()
    }.values():
        yield origins.get(id(relation), name), relation


def _line_of_output(query: exp.Query, name: str) -> int:
    """Return the line of the last select expression that gives a column this name."""
    select = query
    while not isinstance(select, exp.Select) and isinstance(select.this, exp.Query):
        select = select.this
    parts = [part for part in select.expressions if part.output_name.lower() == name]
    is_repeated_by_name = len(parts) > 1  # otherwise a star adds at least one of the columns
    if not is_repeated_by_name:
        parts = [part for part in select.expressions if part.is_star] or parts
    lines = [
        int(node.meta["line"]) for part in parts[-1:] for node in part.walk() if "line" in node.meta
    ]
    return max(lines, default=1)
