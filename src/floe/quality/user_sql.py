"""Take in the SQL that users write in checks: a condition, or one query. Pure.

What passes is used as it was written: only its writer knows what it is to mean. It is parsed to
make sure that it is one whole thing, so that it cannot end the statement around it.
"""

from dataclasses import dataclass
from functools import lru_cache

from sqlglot import TokenType, exp, parse, tokenize
from sqlglot.errors import SqlglotError

from floe.quality.errors import WrongPartError

DIALECT = "spark"
# What stands for the version in the SQL of a check.
PLACE = "{dataset}"
_STAND_IN = "floe_version"


@dataclass(frozen=True)
class Condition:
    """A condition on rows, and whether it asks other tables."""

    text: str
    has_query: bool


@lru_cache(maxsize=1024)
def read_condition(text: str) -> Condition:
    """Take in a condition that stands behind WHERE."""
    trees = _parse(f"(\n{text}\n)", text)
    # A bracket that closes ours would leave something behind the condition.
    whole = len(trees) == 1 and isinstance(trees[0], exp.Paren)
    if not whole or isinstance(trees[0].this, exp.Alias):
        raise WrongPartError(f"'{text}' is not one condition, such as: status = 'open'")
    return Condition(text, trees[0].find(exp.Query) is not None)


@lru_cache(maxsize=1024)
def read_query(text: str) -> exp.Query:
    """Take in a query that gives one column. Its tree belongs to all: copy it before a change."""
    trees = _parse(text.replace(PLACE, _STAND_IN), text)
    if len(trees) != 1 or not isinstance(trees[0], exp.Select | exp.SetOperation):
        raise WrongPartError(f"its SQL is not one SELECT: {_short(text)}")
    query = trees[0]
    if len(query.selects) != 1 or query.is_star:
        raise WrongPartError(f"its SQL gives not one column but several: {_short(text)}")
    return query


def place_query(text: str, source: str) -> str:
    """Return a query as it was written, without its semicolon, on this source of rows."""
    read_query(text)
    end = next((t.start for t in tokenize(text, DIALECT) if t.token_type is _END), len(text))
    return text[:end].replace(PLACE, source)


_END = TokenType.SEMICOLON


def _parse(sql: str, written: str) -> list[exp.Expr]:
    try:
        trees = parse(sql, dialect=DIALECT)
    except (SqlglotError, RecursionError) as error:
        first = str(error).splitlines()[0]
        raise WrongPartError(f"its SQL cannot be read: {_short(written)} ({first})") from None
    # What follows the last semicolon is nothing, or a comment.
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 120 else f"{line[:117]}…"
