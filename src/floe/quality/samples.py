"""The query that shows some of the rows that failed a check. Pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlglot import exp

from floe.quality.columns import ColumnLike, Columns
from floe.quality.errors import UnusableCheckError, WrongPartError
from floe.quality.expecting import counts_failures
from floe.quality.quoting import quote_name
from floe.quality.sources import doubles, key_columns, orphans, rows_of, select
from floe.quality.user_sql import DIALECT, place_query, read_query
from floe.quality.violations import violation
from floe.spec.checks import (
    AnyCheck,
    FreshnessCheck,
    ReferentialCheck,
    RowCountCheck,
    SqlCheck,
    UniqueCheck,
)

_NONE: Mapping[str, str] = MappingProxyType({})


def sample_query(
    check: AnyCheck,
    view: str,
    limit: int,
    *,
    columns: Iterable[ColumnLike] = (),
    references: Mapping[str, str] = _NONE,
) -> str | None:
    """Return the query that gives up to `limit` failing rows, None where there are none to show.

    Row counts and freshness fail as a whole. The query of a SQL check counts failing rows only
    when it is a plain `select count(*)` of which none is expected.
    """
    if limit < 1:
        return None
    try:
        rows = _failing(check, quote_name(view), Columns(columns), references)
    except WrongPartError as error:
        raise UnusableCheckError(check.label, str(error)) from None
    return f"{rows}\nLIMIT {int(limit)}" if rows else None


def _failing(
    check: AnyCheck, view: str, columns: Columns, references: Mapping[str, str]
) -> str | None:
    if isinstance(check, RowCountCheck | FreshnessCheck):
        return None
    if isinstance(check, SqlCheck):
        return _counted(check, rows_of(view, check.where))
    if isinstance(check, UniqueCheck):
        return _with_double(check, view)
    if isinstance(check, ReferentialCheck):
        reference = references.get(check.dataset)
        return reference and select("*", orphans(check, view, quote_name(reference)))
    return select("*", rows_of(view, check.where), "WHERE", violation(check, columns))


def _with_double(check: UniqueCheck, view: str) -> str:
    """Rows of the same key stand next to each other."""
    keys = key_columns(check.columns)
    # A null in a key is the same as another null, which only this comparison says.
    equal = " AND ".join(f"here.{key} <=> twice.{key}" for key in keys)
    return select(
        "here.*",
        f"{rows_of(view, check.where)} AS here",
        f"LEFT SEMI JOIN {doubles(check, view)} AS twice ON {equal}",
        f"ORDER BY {', '.join(keys)}",
    )


def _counted(check: SqlCheck, source: str) -> str | None:
    if not counts_failures(check.expect) or not _is_plain_count(read_query(check.sql)):
        return None
    query = read_query(place_query(check.sql, source)).copy()
    query.set("expressions", [exp.Star()])
    return query.sql(dialect=DIALECT)


def _is_plain_count(query: exp.Query) -> bool:
    """Tell whether a query does nothing but count rows: `select count(*) from … where …`."""
    if not isinstance(query, exp.Select) or not query.args.get("from_"):
        return False
    counted = query.selects[0].unalias()
    changes = ("group", "having", "distinct", "limit", "offset", "qualify")
    return (
        isinstance(counted, exp.Count)
        and isinstance(counted.this, exp.Star)
        and not any(query.args.get(key) for key in changes)
    )
