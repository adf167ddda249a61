"""Questions that are asked all day: built and compiled once, answered with named tuples.

SQLAlchemy needs longer to prepare a statement than a database to answer a small one. A question
is prepared once for each database, and its values go to the driver and back by the column types
as everywhere else.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar, cast

from sqlalchemy import CompoundSelect, Dialect, Select
from sqlalchemy.orm import Session

from floe.catalog.prepared import PreparedSelect

MOST_ROWS = 200_000

R = TypeVar("R", bound=tuple[Any, ...])
Statement = Select[*tuple[Any, ...]] | CompoundSelect[*tuple[Any, ...]]


class Question(Generic[R]):
    """A SELECT whose rows have a name and a type for each column."""

    def __init__(self, row: Callable[..., R], statement: Statement) -> None:
        self._row = row
        self.statement = statement

    def ask(self, session: Session, **values: Any) -> list[R]:
        """Return the rows for these values."""
        session.flush()
        connection = session.connection()
        prepared, convert = _prepare(self, connection.dialect)
        rows = prepared.fetch(connection, MOST_ROWS, **values)
        # Column by column, because most columns come as they are.
        columns: list[Iterable[Any]] = list(zip(*rows, strict=True))
        for place, conversion in convert if rows else ():
            columns[place] = map(conversion, columns[place])
        return list(map(self._row, *columns)) if rows else []

    def ask_one(self, session: Session, **values: Any) -> R | None:
        """Return the only row for these values, None when there is none."""
        rows = self.ask(session, **values)
        return rows[0] if rows else None


class _Conversion(NamedTuple):
    place: int
    convert: Callable[[Any], Any]


@lru_cache(maxsize=512)
def _prepare(
    question: Question[Any], dialect: Dialect
) -> tuple[PreparedSelect, Sequence[_Conversion]]:
    # A union is compiled like any other SELECT.
    prepared = PreparedSelect(cast("Select[*tuple[Any, ...]]", question.statement), dialect)
    found = (
        column.type.dialect_impl(dialect).result_processor(dialect, None)
        for column in question.statement.selected_columns
    )
    return prepared, [_Conversion(place, one) for place, one in enumerate(found) if one]
