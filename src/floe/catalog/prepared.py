"""Run a SELECT on the driver itself, where a question takes many small ones.

SQLAlchemy needs some 40 µs for a statement, SQLite often less than 10. The statement is still
SQLAlchemy's, compiled once for its dialect, and a database error still comes as one of its own.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, Dialect, Select
from sqlalchemy.exc import DBAPIError

Row = tuple[Any, ...]


class PreparedSelect:
    """A SELECT whose rows come as plain tuples, as the driver has them: for numbers and text."""

    def __init__(self, statement: Select[*tuple[Any, ...]], dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._statement = statement
        self._sql = compiled.string
        self._dialect = dialect
        self._names = compiled.positiontup if compiled.positional else None
        self._fixed = compiled.params
        self._convert = _converters(compiled.binds, dialect)
        # A list that is spelled out anew for each length cannot be prepared.
        self._varies = any(bind.expanding for bind in compiled.binds.values())

    def fetch(self, connection: Connection, limit: int, **values: Any) -> Sequence[Row]:
        """Return up to `limit` rows for these values."""
        if self._varies:
            return connection.execute(self._statement, values).fetchmany(limit)
        given = {**self._fixed, **values}
        for name, convert in self._convert:
            given[name] = convert(given[name])
        bound = given if self._names is None else [given[name] for name in self._names]
        any_error = self._dialect.loaded_dbapi.Error
        cursor = connection.connection.cursor()
        try:
            cursor.execute(self._sql, bound)
            rows: Sequence[Row] = cursor.fetchmany(limit)
        except any_error as error:
            raise DBAPIError.instance(
                self._sql, bound, error, any_error, dialect=self._dialect
            ) from error
        finally:
            cursor.close()
        return rows


def _converters(binds: Any, dialect: Dialect) -> list[tuple[str, Callable[[Any], Any]]]:
    found = (
        (name, bind.type.dialect_impl(dialect).bind_processor(dialect))
        for name, bind in binds.items()
    )
    return [(name, convert) for name, convert in found if convert]
