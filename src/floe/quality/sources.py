"""Where the rows of a measure come from: the version itself, its doubles, its orphans. Pure.

Each function returns what stands behind FROM.
"""

from collections.abc import Sequence

from floe.quality.quoting import quote_column
from floe.quality.user_sql import read_condition
from floe.spec.checks import ReferentialCheck, UniqueCheck

# How often a key occurs.
TIMES = "floe_times"


def select(what: str, source: str, *rest: str) -> str:
    """Write a query. All that comes in is quoted, or was taken in as SQL of the user's."""
    return " ".join(("SELECT", what, "FROM", source, *rest))


def rows_of(view: str, where: str | None) -> str:
    """Return the rows of a view that a check looks at."""
    if where is None:
        return view
    query = select("*", view, "WHERE", f"(\n{read_condition(where).text}\n)")
    return f"({query})"


def doubles(check: UniqueCheck, view: str) -> str:
    """Return the keys that occur more than once, and how often.

    A row without any value in its key has no key and is left out. In a key of several columns a
    null is a value like any other: (4711, null) twice is twice the same.
    """
    keys = ", ".join(key_columns(check.columns))
    query = select(
        f"{keys}, count(*) AS {TIMES}",
        rows_of(view, check.where),
        f"WHERE {_has_key(check.columns)} GROUP BY {keys} HAVING count(*) > 1",
    )
    return f"({query})"


def key_columns(names: Sequence[str]) -> list[str]:
    """Return a key in one form, in whatever order and case its columns were given."""
    return sorted({quote_column(name.lower()) for name in names})


def _has_key(names: Sequence[str]) -> str:
    return " OR ".join(f"{key} IS NOT NULL" for key in key_columns(names))


def orphans(check: ReferentialCheck, view: str, reference: str) -> str:
    """Return the rows whose values the other dataset lacks. A null refers to nothing."""
    pairs = zip(check.columns, check.to_columns or check.columns, strict=True)
    equal = [f"here.{quote_column(own)} = there.{quote_column(other)}" for own, other in pairs]
    present = [f"here.{quote_column(own)} IS NOT NULL" for own in check.columns]
    query = select(
        "*",
        f"{rows_of(view, check.where)} AS here",
        f"LEFT ANTI JOIN {reference} AS there ON {' AND '.join(equal)}",
        f"WHERE {' AND '.join(present)}",
    )
    return f"({query})"
