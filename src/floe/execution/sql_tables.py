"""Which tables a query names. Pure."""

from functools import lru_cache


@lru_cache(maxsize=512)
def tables_in(sql: str) -> frozenset[str]:
    """Return the names of the tables of a query in lower case; none if it cannot be read."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(sql, dialect="spark")
    except SqlglotError:
        return frozenset()
    return frozenset(table.name.lower() for table in parsed.find_all(exp.Table))
