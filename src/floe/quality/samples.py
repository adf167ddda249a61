"""The query that selects sample rows that failed a check. Pure."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from sqlglot import exp

from floe.quality.check_sql import (
    DIALECT,
    CheckSqlError,
    UnusableCheckError,
    duplicate_keys,
    fill_query,
    key_columns,
    orphans,
    parse_query,
    quote_name,
    rows_of,
    select,
)
from floe.quality.judge import counts_failures
from floe.quality.violations import ColumnLike, Columns, violation
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
    """Return a query for up to `limit` failing rows, or None if there are none.

    Row counts and freshness apply to the version as a whole. A SQL check has failing rows only if
    it is a plain `select count(*)` that is expected to be 0.
    """
    if limit < 1:
        return None
    try:
        rows = _failing(check, quote_name(view), Columns(columns), references)
    except CheckSqlError as error:
        raise UnusableCheckError(check.label, str(error)) from None
    return f"{rows}\nLIMIT {int(limit)}" if rows else None


def _failing(
    check: AnyCheck, view: str, columns: Columns, references: Mapping[str, str]
) -> str | None:
    if isinstance(check, RowCountCheck | FreshnessCheck):
        return None
    if isinstance(check, SqlCheck):
        return _counted_rows(check, rows_of(view, check.where))
    if isinstance(check, UniqueCheck):
        return _duplicates(check, view)
    if isinstance(check, ReferentialCheck):
        reference = references.get(check.dataset)
        return reference and select("*", orphans(check, view, quote_name(reference)))
    return select("*", rows_of(view, check.where), "WHERE", violation(check, columns))


def _duplicates(check: UniqueCheck, view: str) -> str:
    """Select all rows with a duplicate key, ordered by key."""
    keys = key_columns(check.columns)
    # `<=>` treats nulls as equal, as the check does.
    equal = " AND ".join(f"here.{key} <=> twice.{key}" for key in keys)
    return select(
        "here.*",
        f"{rows_of(view, check.where)} AS here",
        f"LEFT SEMI JOIN {duplicate_keys(check, view)} AS twice ON {equal}",
        f"ORDER BY {', '.join(keys)}",
    )


def _counted_rows(check: SqlCheck, source: str) -> str | None:
    if not counts_failures(check.expect) or not _is_plain_count(parse_query(check.sql)):
        return None
    query = parse_query(fill_query(check.sql, source)).copy()
    query.set("expressions", [exp.Star()])
    return query.sql(dialect=DIALECT)


def _is_plain_count(query: exp.Query) -> bool:
    """Tell whether a query only counts rows: `select count(*) from … where …`."""
    if not isinstance(query, exp.Select) or not query.args.get("from_"):
        return False
    counted = query.selects[0].unalias()
    changes = ("group", "having", "distinct", "limit", "offset", "qualify")
    return (
        isinstance(counted, exp.Count)
        and isinstance(counted.this, exp.Star)
        and not any(query.args.get(key) for key in changes)
    )
