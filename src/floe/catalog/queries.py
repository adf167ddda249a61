"""Run SELECTs directly on the driver, for requests that need many small ones.

SQLAlchemy needs some 40 µs per statement, SQLite often less than 10. The statement is still built
by SQLAlchemy, compiled once per dialect, and errors are still raised as SQLAlchemy's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import CompoundSelect, Connection, Dialect, Select
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

MAX_ROW_ID = 2**63 - 1


def parse_row_id(text: str) -> int | None:
    """Read a row id; None if the text is not an id or is out of range."""
    if not (text.isascii() and text.isdigit()):
        return None
    row_id = int(text[:20])
    return row_id if row_id <= MAX_ROW_ID else None


# Databases limit the number of values in one statement.
MAX_VALUES = 500

Value = TypeVar("Value")


def batches(values: Iterable[Value], size: int = MAX_VALUES) -> Iterator[list[Value]]:
    """Split values into batches that fit into one statement."""
    rest = iter(values)
    while batch := list(islice(rest, size)):
        yield batch


Row = tuple[Any, ...]


class PreparedSelect:
    """A SELECT that returns the driver's raw tuples: for numbers and text only."""

    def __init__(self, statement: Select[*tuple[Any, ...]], dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self._statement = statement
        self._sql = compiled.string
        self._dialect = dialect
        self._names = compiled.positiontup if compiled.positional else None
        self._fixed = compiled.params
        self._convert = _converters(compiled.binds, dialect)
        # A list parameter is rendered for each length, so the statement cannot be compiled once.
        self._varies = any(bind.expanding for bind in compiled.binds.values())

    def fetch(self, connection: Connection, limit: int, **values: Any) -> Sequence[Row]:
        """Return up to `limit` rows for these parameters."""
        if self._varies:
            return connection.execute(self._statement, values).fetchmany(limit)
        parameters = {**self._fixed, **values}
        for name, convert in self._convert:
            parameters[name] = convert(parameters[name])
        bound = parameters if self._names is None else [parameters[name] for name in self._names]
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
    processors = (
        (name, bind.type.dialect_impl(dialect).bind_processor(dialect))
        for name, bind in binds.items()
    )
    return [(name, convert) for name, convert in processors if convert]


MAX_ROWS = 200_000

R = TypeVar("R")

Statement = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]]


class TypedQuery(Generic[R]):
    """A SELECT that returns typed rows: structs, or whatever the function builds.

    The columns of the SELECT are named like the first fields of the struct, in the same order.
    """

    def __init__(self, row: Callable[..., R], statement: Statement) -> None:
        fields = getattr(row, "__struct_fields__", None)
        names = tuple(column.name for column in statement.selected_columns)
        if fields is not None and names != fields[: len(names)]:
            raise TypeError(f"{row} has the fields {fields}, but the SELECT returns {names}")
        self._row = row
        self.statement = statement

    def fetch(self, session: Session, **values: Any) -> list[R]:
        """Return the rows for these parameters."""
        session.flush()
        connection = session.connection()
        prepared, convert = _prepare(self, connection.dialect)
        rows = prepared.fetch(connection, MAX_ROWS, **values)
        # Convert by column, because most columns need no conversion.
        columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
        for index, conversion in convert if rows else ():
            columns[index] = map(conversion, columns[index])
        return list(map(self._row, *columns)) if rows else []

    def fetch_one(self, session: Session, **values: Any) -> R | None:
        """Return the row for these parameters, or None."""
        rows = self.fetch(session, **values)
        return rows[0] if rows else None


class _Conversion(NamedTuple):
    position: int
    convert: Callable[[Any], Any]


@lru_cache(maxsize=512)
def _prepare(
    query: TypedQuery[Any], dialect: Dialect
) -> tuple[PreparedSelect, Sequence[_Conversion]]:
    # A union is compiled like any other SELECT.
    prepared = PreparedSelect(cast("Select[*tuple[Any, ...]]", query.statement), dialect)
    processors = (
        column.type.dialect_impl(dialect).result_processor(dialect, None)
        for column in query.statement.selected_columns
    )
    return prepared, [
        _Conversion(index, processor) for index, processor in enumerate(processors) if processor
    ]
